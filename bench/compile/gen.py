#!/usr/bin/env python3
"""Writes a transformer in plain linalg, cut the way Megatron cuts it.

  gen.py --layers 4 --form flat --mesh dp=2,tp=4
  gen.py --layers 4 --dialect shard          upstream's `shard` instead

A layer is RMS norm, attention by heads, add, RMS norm, gated perceptron, add.
The batch is cut over the first axis of the mesh, heads and columns over the
second. Heads have a dim of their own, as upstream knows no reshapes. Three
forms of one model: `flat` (all layers in one function, each with its weights),
`called` (a private function, called once a layer), `loop` (`scf.for` over
stacked weights). `--sequence` cuts the sequence over the second axis between
the heavy parts.
"""

import argparse

MAC = ["%p = arith.mulf %i0, %i1 : f32", "%q = arith.addf %o, %p : f32"]
EXP = ["%d = arith.subf %i0, %i1 : f32", "%s = arith.mulf %d, %scale : f32"]


def tensor(shape):
    return "tensor<" + "".join(f"{n}x" for n in shape) + "f32>"


class Writer:
    """Emits ops with fresh names; dims are letters with a size each."""

    def __init__(self, options):
        self.o = options
        self.lines = []
        self.count = 0
        inner = options.model // options.heads
        self.size = dict(
            b=options.batch,
            s=options.seq,
            t=options.seq,
            d=options.model,
            h=options.heads,
            e=inner,
            f=options.ffn,
        )
        self.axes = [name for name, _ in options.mesh]

    def fresh(self):
        self.count += 1
        return f"%v{self.count}"

    def type(self, dims):
        return tensor([self.size[d] for d in dims])

    def emit(self, line, indent=2):
        self.lines.append(" " * indent + line)

    def empty(self, dims):
        name = self.fresh()
        self.emit(f"{name} = tensor.empty() : {self.type(dims)}")
        return name

    def fill(self, dims, scalar="%zero"):
        to, name = self.empty(dims), self.fresh()
        self.emit(
            f"{name} = linalg.fill ins({scalar} : f32) outs({to} : "
            f"{self.type(dims)}) -> {self.type(dims)}"
        )
        return name

    def generic(self, loops, ins, out, body, init=None):
        """`ins`: (value, dims); dims of `loops` not in `out` are reduced."""
        init = init or self.empty(out)
        name = self.fresh()
        order = ", ".join(loops)
        maps = ", ".join(
            f"affine_map<({order}) -> ({', '.join(dims)})>"
            for dims in [dims for _, dims in ins] + [out]
        )
        kinds = ", ".join(
            '"parallel"' if d in out else '"reduction"' for d in loops
        )
        values = ", ".join(value for value, _ in ins)
        types = ", ".join(self.type(dims) for _, dims in ins)
        self.emit(
            f"{name} = linalg.generic {{indexing_maps = [{maps}], "
            f"iterator_types = [{kinds}]}} ins({values} : {types}) "
            f"outs({init} : {self.type(out)}) {{"
        )
        args = ", ".join(f"%i{k}: f32" for k in range(len(ins)))
        self.emit(f"^bb0({args}, %o: f32):")
        for line in body:
            self.emit(line, 4)
        last = body[-1].split()[0]
        self.emit(f"linalg.yield {last} : f32", 4)
        self.emit(f"}} -> {self.type(out)}")
        return name

    def reduce(self, loops, ins, out, body, scalar="%zero"):
        return self.generic(loops, ins, out, body, self.fill(out, scalar))

    def cut(self, value, dims, cuts):
        """Says how a value lies: `cuts` has an axis per letter."""
        lists = [cuts.get(d) for d in dims]
        name = self.fresh()
        if self.o.dialect == "shard":
            axes = [self.axes.index(a) if a else None for a in lists]
            while axes and axes[-1] is None:
                axes.pop()
            text = ", ".join("[]" if a is None else f"[{a}]" for a in axes)
            self.emit(
                f"{name}s = shard.sharding @g split_axes = [{text or '[]'}] "
                ": !shard.sharding"
            )
            self.emit(f"{name} = shard.shard {value} to {name}s : {self.type(dims)}")
        else:
            self.emit(
                f"{name} = cleave.constraint {value} "
                f"<@g, {self.dim_list(dims, cuts)}> : {self.type(dims)}"
            )
        return name

    def dim_list(self, dims, cuts):
        cells = [f'{{"{cuts[d]}"}}' if d in cuts else "{}" for d in dims]
        return "[" + ", ".join(cells) + "]"

    # The model.

    def weights(self):
        tp = self.axes[1] if self.o.cut else None
        heads = {"h": tp} if tp else {}
        inner = {"f": tp} if tp else {}
        return {
            "norm1": ("d", {}),
            "wq": ("hde", heads),
            "wk": ("hde", heads),
            "wv": ("hde", heads),
            "wo": ("hed", heads),
            "norm2": ("d", {}),
            "gate": ("df", inner),
            "up": ("df", inner),
            "down": ("fd", inner),
        }

    def activation(self):
        cuts = {"b": self.axes[0]} if self.o.cut else {}
        if self.o.sequence:
            cuts["s"] = self.axes[1]
        return cuts

    def between(self, value):
        """Where the sequence is cut: between the heavy parts."""
        if not self.o.sequence:
            return value
        return self.cut(value, "bsd", self.activation())

    def norm(self, x, gain):
        squares = self.reduce(
            "bsd",
            [(x, "bsd")],
            "bs",
            ["%p = arith.mulf %i0, %i0 : f32", "%q = arith.addf %o, %p : f32"],
        )
        return self.generic(
            "bsd",
            [(x, "bsd"), (squares, "bs"), (gain, "d")],
            "bsd",
            [
                "%m = arith.mulf %i1, %inverse : f32",
                "%a = arith.addf %m, %eps : f32",
                "%r = math.rsqrt %a : f32",
                "%t = arith.mulf %i0, %r : f32",
                "%u = arith.mulf %t, %i2 : f32",
            ],
        )

    def softmax(self, scores):
        bhst, bhs = "bhst", "bhs"
        top = self.reduce(
            bhst,
            [(scores, bhst)],
            bhs,
            ["%p = arith.maximumf %i0, %o : f32"],
            "%lowest",
        )
        powers = self.generic(
            bhst,
            [(scores, bhst), (top, bhs)],
            bhst,
            EXP + ["%z = math.exp %s : f32"],
        )
        total = self.reduce(
            bhst, [(powers, bhst)], bhs, ["%p = arith.addf %i0, %o : f32"]
        )
        return self.generic(
            bhst,
            [(powers, bhst), (total, bhs)],
            bhst,
            ["%p = arith.divf %i0, %i1 : f32"],
        )

    def add(self, x, y):
        return self.generic(
            "bsd",
            [(x, "bsd"), (y, "bsd")],
            "bsd",
            ["%p = arith.addf %i0, %i1 : f32"],
        )

    def layer(self, x, w):
        h = self.between(self.norm(x, w["norm1"]))
        q, k, v = (
            self.reduce("bhsed", [(h, "bsd"), (w[n], "hde")], "bhse", MAC)
            for n in ("wq", "wk", "wv")
        )
        scores = self.reduce("bhste", [(q, "bhse"), (k, "bhte")], "bhst", MAC)
        probs = self.softmax(scores)
        mixed = self.reduce("bhset", [(probs, "bhst"), (v, "bhte")], "bhse", MAC)
        out = self.reduce("bsdhe", [(mixed, "bhse"), (w["wo"], "hed")], "bsd", MAC)
        x = self.between(self.add(x, out))
        h = self.between(self.norm(x, w["norm2"]))
        gate, up = (
            self.reduce("bsfd", [(h, "bsd"), (w[n], "df")], "bsf", MAC)
            for n in ("gate", "up")
        )
        act = self.generic(
            "bsf",
            [(gate, "bsf"), (up, "bsf")],
            "bsf",
            [
                "%n = arith.negf %i0 : f32",
                "%z = math.exp %n : f32",
                "%d = arith.addf %z, %one : f32",
                "%t = arith.divf %i0, %d : f32",
                "%y = arith.mulf %t, %i1 : f32",
            ],
        )
        down = self.reduce("bsdf", [(act, "bsf"), (w["down"], "fd")], "bsd", MAC)
        return self.between(self.add(x, down))

    def constants(self):
        inner = self.size["e"]
        self.emit("%zero = arith.constant 0.0 : f32")
        self.emit("%one = arith.constant 1.0 : f32")
        self.emit("%lowest = arith.constant -3.0e38 : f32")
        self.emit("%eps = arith.constant 1.0e-5 : f32")
        self.emit(f"%inverse = arith.constant {1 / self.o.model:.9e} : f32")
        self.emit(f"%scale = arith.constant {inner ** -0.5:.9e} : f32")

    def argument(self, name, dims, cuts, weight=None, stacked=False):
        shape = [self.size[d] for d in dims]
        if stacked:
            shape = [self.o.layers] + shape
        text = f"%{name}: {tensor(shape)}"
        if self.o.dialect == "shard":
            return text
        attrs = [f'cleave.weight = "{weight}"'] if weight else []
        if self.o.cut:
            cells = self.dim_list(dims, cuts)
            if stacked:
                cells = "[{}" + (", " if dims else "") + cells[1:]
            attrs.append(f"cleave.sharding = #cleave.sharding<@g, {cells}>")
        return text + (f" {{{', '.join(attrs)}}}" if attrs else "")

    def result(self):
        text = self.type("bsd")
        if self.o.dialect == "shard" or not self.o.cut:
            return text
        cells = self.dim_list("bsd", self.activation())
        return f"({text} {{cleave.sharding = #cleave.sharding<@g, {cells}>}})"

    def function(self, head, args, result, body):
        self.lines.append(f"func.func {head}({', '.join(args)}) -> {result} {{")
        self.constants()
        value = body()
        self.emit(f"return {value} : {self.type('bsd')}")
        self.lines.append("}")

    def mesh(self):
        if self.o.dialect == "shard":
            sizes = "x".join(str(n) for _, n in self.o.mesh)
            self.lines.append(f"shard.grid @g(shape = {sizes})")
        elif self.o.cut:
            axes = ", ".join(f'"{a}"={n}' for a, n in self.o.mesh)
            self.lines.append(f"cleave.mesh @g = <[{axes}]>")

    def model_flat(self):
        args = [self.argument("x", "bsd", self.activation())]
        for i in range(self.o.layers):
            for n, (dims, cuts) in self.weights().items():
                args.append(self.argument(f"{n}_{i}", dims, cuts, f"{n}.{i}"))

        def body():
            x = "%x"
            shard = self.o.dialect == "shard" and self.o.cut
            if shard:
                x = self.cut(x, "bsd", self.activation())
            for i in range(self.o.layers):
                w = {n: f"%{n}_{i}" for n in self.weights()}
                if shard:
                    for n, (dims, cuts) in self.weights().items():
                        w[n] = self.cut(w[n], dims, cuts)
                x = self.layer(x, w)
            return x

        self.function("@forward", args, self.result(), body)

    def model_called(self):
        names = self.weights()
        plain = [f"%x: {self.type('bsd')}"]
        plain += [f"%{n}: {self.type(d)}" for n, (d, _) in names.items()]
        self.function(
            "private @layer",
            plain,
            self.type("bsd"),
            lambda: self.layer("%x", {n: f"%{n}" for n in names}),
        )
        args = [self.argument("x", "bsd", self.activation())]
        for i in range(self.o.layers):
            for n, (dims, cuts) in names.items():
                args.append(self.argument(f"{n}_{i}", dims, cuts, f"{n}.{i}"))
        types = ", ".join(
            self.type(d) for d in ["bsd"] + [d for d, _ in names.values()]
        )

        def body():
            x = "%x"
            for i in range(self.o.layers):
                name = self.fresh()
                given = ", ".join([x] + [f"%{n}_{i}" for n in names])
                self.emit(
                    f"{name} = func.call @layer({given}) : ({types}) -> "
                    f"{self.type('bsd')}"
                )
                x = name
            return x

        self.function("@forward", args, self.result(), body)

    def model_loop(self):
        names = self.weights()
        args = [self.argument("x", "bsd", self.activation())]
        for n, (dims, cuts) in names.items():
            args.append(self.argument(n, dims, cuts, n, stacked=True))

        def body():
            for name, value in ("first", 0), ("last", self.o.layers), ("step", 1):
                self.emit(f"%{name} = arith.constant {value} : index")
            name = self.fresh()
            self.emit(
                f"{name} = scf.for %i = %first to %last step %step "
                f"iter_args(%x_i = %x) -> ({self.type('bsd')}) {{"
            )
            w = {}
            for n, (dims, _) in names.items():
                shape = [self.size[d] for d in dims]
                offsets = ", ".join(["%i"] + ["0"] * len(shape))
                sizes = ", ".join(str(k) for k in [1] + shape)
                ones = ", ".join(["1"] * (len(shape) + 1))
                w[n] = self.fresh()
                self.emit(
                    f"{w[n]} = tensor.extract_slice %{n}[{offsets}] [{sizes}] "
                    f"[{ones}] : {tensor([self.o.layers] + shape)} to "
                    f"{tensor(shape)}"
                )
            x = self.layer("%x_i", w)
            self.emit(f"scf.yield {x} : {self.type('bsd')}")
            self.emit("}")
            return name

        self.function("@forward", args, self.result(), body)


def parse_mesh(text):
    return [(a, int(n)) for a, n in (part.split("=") for part in text.split(","))]


def parser():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--layers", type=int, default=1)
    p.add_argument("--form", choices=["flat", "called", "loop"], default="flat")
    p.add_argument("--dialect", choices=["cleave", "shard"], default="cleave")
    p.add_argument("--mesh", type=parse_mesh, default="dp=2,tp=4")
    p.add_argument("--sequence", action="store_true")
    p.add_argument("--whole", dest="cut", action="store_false")
    for name, size in [
        ("batch", 4),
        ("seq", 32),
        ("model", 64),
        ("heads", 8),
        ("ffn", 256),
    ]:
        p.add_argument(f"--{name}", type=int, default=size)
    return p


def generate(options):
    if len(options.mesh) != 2:
        raise ValueError("a mesh has two axes here: the batch's and the heads'")
    if options.dialect == "shard" and options.form != "flat":
        raise ValueError("upstream's shard passes take the flat form only")
    writer = Writer(options)
    writer.mesh()
    getattr(writer, f"model_{options.form}")()
    return "\n".join(writer.lines) + "\n"


if __name__ == "__main__":
    print(generate(parser().parse_args()), end="")
