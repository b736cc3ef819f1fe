"""Writes programs/*.out: what torch prints for each program. To be run with torch 2.13."""

import seed_programs

if __name__ == "__main__":
    for program in seed_programs.TABLE:
        outcome = seed_programs.run(program)
        if program.raises is not None:
            assert str(outcome.error).startswith(program.raises[1]), outcome.error
        (seed_programs.PROGRAMS / f"{program.name}.out").write_text(outcome.output)
