// Whether somebody is told of writes before they happen (announce_write, custom.h).
#pragma once

namespace rl {

bool writes_watched();

}  // namespace rl
