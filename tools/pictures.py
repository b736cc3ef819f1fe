"""Writes docs/pictures/: the graphs that docs/how-it-works.md talks about, drawn from the real ones.

    python tools/pictures.py            writes the files (`make coverage` does so too)
    python tools/pictures.py --check    fails if they are not up to date

`Graph` walks the nodes from some tensors and places them in rows: a node stands above all that lead to it, so
the program runs downwards and the gradient upwards, as the arrows point.
"""

import html
import sys
from pathlib import Path

import rushlight as torch

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "pictures"
BOX, GAP, ROW, TOP = (
    168,
    46,
    104,
    30,
)  # a node's width, the space beside it, from row to row, above the first row
INK, LEAF, SAVED, GRADIENT = "#27272a", "#dcfce7", "#1d4ed8", "#b45309"


def short(tensor):
    """A tensor's elements in a few letters: `4, -18`."""
    return ", ".join(f"{value:g}" for value in tensor.flatten().tolist()[:4])


class Graph:
    """The nodes that lead to `tensors`, by name; `leaves` names tensors that nothing else would name."""

    def __init__(self, title, tensors, leaves=()):
        self.title = title
        self.names = {}
        for name, tensor in {**tensors, **dict(leaves)}.items():
            if tensor.grad_fn is not None:
                self.names.setdefault(tensor.grad_fn, []).append(name)
        self.leaf_names = {tensor: name for name, tensor in dict(leaves).items()}
        self.order = {}  # of nodes: when the engine came to them
        self.arriving = {}  # what it brought
        self.rows = {}
        for tensor in tensors.values():
            if tensor.grad_fn not in self.rows:
                self.place(tensor.grad_fn, 0)

    def place(self, node, row):
        self.rows[node] = row
        for inner, _ in node.next_functions:
            if inner is not None and self.rows.get(inner, -1) <= row:
                self.place(inner, row + 1)

    def watch(self):
        """Lets every node tell when the engine comes to it, and with which gradients."""

        def tell(node):
            def hook(gradients):
                self.order.setdefault(node, len(self.order) + 1)
                self.arriving[node] = [short(g) for g in gradients if g is not None]

            return hook

        for node in self.rows:
            node.register_prehook(tell(node))

    def lines(self, node):
        """What stands in a node's box: its name, then what it keeps, with the colour of each line."""
        name = node.name().removeprefix("torch::autograd::")
        variable = getattr(node, "variable", None)
        if variable is not None:
            return [(name, INK), (f"of {self.leaf_names.get(variable, 'a leaf')}", INK)]
        kept = []
        for attribute in ("self", "other", "mat2", "result", "exponent"):
            value = getattr(node, f"_saved_{attribute}", None)
            if value is not None:
                kept.append(
                    f"{attribute} = {short(value) if isinstance(value, torch.Tensor) else f'{value:g}'}"
                )
        return [(name, INK)] + [(f"keeps {line}", SAVED) for line in kept]

    def from_above(self):
        """The nodes row by row, leaves first."""
        deepest = max(self.rows.values())
        rows = [[] for _ in range(deepest + 1)]
        for node, row in self.rows.items():
            rows[deepest - row].append(node)
        return rows

    def width(self):
        return max(len(row) for row in self.from_above()) * (BOX + GAP) + GAP

    def height(self):
        return len(self.from_above()) * ROW + TOP

    def draw(self, left):
        """The SVG elements, moved right by `left`."""
        centres = {}
        for number, row in enumerate(self.from_above()):
            first = left + (self.width() - len(row) * (BOX + GAP) + GAP) / 2
            for i, node in enumerate(row):
                centres[node] = (first + i * (BOX + GAP) + BOX / 2, TOP + number * ROW + 36)
        parts = [text(left + self.width() / 2, 18, self.title, INK, 14, "middle", "bold")]
        for node in centres:
            parts += self.edges(node, centres)
        for node, centre in centres.items():
            parts += self.box(node, *centre)
        return parts

    def half_height(self, node):
        return 8 + 8 * len(self.lines(node))

    def edges(self, node, centres):
        x, y = centres[node]
        inner = [following for following, _ in node.next_functions]
        for i, other in enumerate(inner):
            if other is None:
                continue
            from_x, from_y = x + (i - (len(inner) - 1) / 2) * 40, y - self.half_height(node)
            to_x, to_y = centres[other][0], centres[other][1] + self.half_height(other) + 4
            bend = (from_y + to_y) / 2
            way = f"M{from_x:g},{from_y:g}C{from_x:g},{bend:g} {to_x:g},{bend:g} {to_x:g},{to_y:g}"
            yield f'<path d="{way}" fill="none" stroke="{INK}" marker-end="url(#tip)"/>'

    def box(self, node, x, y):
        left, top, bottom = x - BOX / 2, y - self.half_height(node), y + self.half_height(node)
        fill = LEAF if getattr(node, "variable", None) is not None else "white"
        size = f'x="{left:g}" y="{top:g}" width="{BOX}" height="{bottom - top:g}"'
        yield f'<rect {size} rx="6" fill="{fill}" stroke="{INK}"/>'
        for i, (line, colour) in enumerate(self.lines(node)):
            yield text(x, top + 20 + 16 * i, line, colour, 11 if i else 13, "middle")
        if node in self.order:
            yield f'<circle cx="{left:g}" cy="{top:g}" r="10" fill="{GRADIENT}"/>'
            yield text(left, top + 4, self.order[node], "white", 11, "middle")
            yield text(x + 8, bottom + 15, f"gradient {' and '.join(self.arriving[node])}", GRADIENT, 11)
        elif node in self.names:
            yield text(x + 8, bottom + 15, " = ".join(self.names[node]), INK, 12, weight="bold")


def text(x, y, said, colour, size, anchor="start", weight="normal"):
    return (
        f'<text x="{x:g}" y="{y:g}" fill="{colour}" font-size="{size}" text-anchor="{anchor}" '
        f'font-weight="{weight}">{html.escape(str(said))}</text>'
    )


def picture(*graphs):
    """Graphs side by side, as the text of an SVG file."""
    width, height = sum(graph.width() for graph in graphs), max(graph.height() for graph in graphs)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="sans-serif">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" '
        f'orient="auto"><path d="M0,0L8,4L0,8Z" fill="{INK}"/></marker></defs>',
    ]
    left = 0
    for graph in graphs:
        parts += graph.draw(left)
        left += graph.width()
    return "\n".join([*parts, "</svg>"]) + "\n"


def recorded():
    x = torch.tensor([2.0, 3.0])
    w = torch.tensor([0.5, -1.0], requires_grad=True)
    h = w * x
    loss = (h**2).sum()
    before = Graph("recorded by the forward pass", {"loss": loss, "h": h}, {"w": w})
    walked = Graph("walked by loss.backward()", {"loss": loss}, {"w": w})
    walked.watch()
    loss.backward(retain_graph=True)
    return picture(before, walked)


def written():
    graphs = []
    for title in ("before", "after v.mul_(5)"):
        start = torch.ones(2, 2, requires_grad=True)
        base = start * 1
        v = base[0]
        if graphs:
            v.mul_(5)
        graphs.append(Graph(title, {"v": v, "base": base}, {"start": start}))
    return picture(*graphs)


def twice():
    z = torch.tensor(2.0, requires_grad=True)
    cube = z**3
    (first,) = torch.autograd.grad(cube, z, create_graph=True)
    return picture(
        Graph("z ** 3", {"cube": cube}, {"z": z}),
        Graph("its gradient has a graph too", {"first": first}, {"z": z}),
    )


PICTURES = {"recorded": recorded, "written": written, "twice": twice}


def main():
    check = "--check" in sys.argv[1:]
    FOLDER.mkdir(exist_ok=True)
    for name, make in PICTURES.items():
        file, made = FOLDER / f"{name}.svg", make()
        if check and not (file.exists() and file.read_text() == made):
            sys.exit(f"docs/pictures/{name}.svg is not up to date: run tools/pictures.py")
        if not check:
            file.write_text(made)


if __name__ == "__main__":
    main()
