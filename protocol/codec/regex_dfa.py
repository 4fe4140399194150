"""Turns a schema's `pattern` into a table-driven matcher.

Owns a small regular-expression compiler (parse, Thompson construction, subset construction, minimisation) for the
part of the syntax our schemas use: literals, escapes, classes, groups, alternation, ? * + {m,n}, ^ and $ at the
ends. Anything else is an error at build time, so a pattern can never be half understood. Bytes above 127 match no
class, which is right as long as patterns are ASCII (checked).
"""

REPEAT_MAX = 64


class PatternError(Exception):
    pass


def compile_pattern(pattern):
    """Returns (classes, table, start, accepting): classes maps a byte to a column, table is rows of next states."""
    if not pattern.isascii():
        raise PatternError(f"{pattern!r}: patterns are ASCII")
    anchored_start = pattern.startswith("^")
    anchored_end = pattern.endswith("$") and not pattern.endswith("\\$")
    body = pattern[1 if anchored_start else 0:-1 if anchored_end else None]
    nfa = _Nfa()
    anything = frozenset(range(256))
    tree = _Parser(body, pattern).parse()
    if not anchored_start:
        tree = ("concat", [("star", ("set", anything)), tree])
    if not anchored_end:
        tree = ("concat", [tree, ("star", ("set", anything))])
    start, end = nfa.build(tree)
    return _minimise(*_determinise(nfa, start, end))


class _Parser:
    def __init__(self, text, whole):
        self.text, self.whole, self.at = text, whole, 0

    def error(self, what):
        raise PatternError(f"{self.whole!r}: {what} at {self.at}")

    def peek(self):
        return self.text[self.at] if self.at < len(self.text) else ""

    def take(self):
        c = self.peek()
        if not c:
            self.error("ends too early")
        self.at += 1
        return c

    def parse(self):
        tree = self.alternatives()
        if self.peek():
            self.error(f"unexpected {self.peek()!r}")
        return tree

    def alternatives(self):
        options = [self.sequence()]
        while self.peek() == "|":
            self.take()
            options.append(self.sequence())
        return options[0] if len(options) == 1 else ("or", options)

    def sequence(self):
        items = []
        while self.peek() and self.peek() not in "|)":
            items.append(self.repeated())
        return ("concat", items)

    def repeated(self):
        tree = self.atom()
        while self.peek() and self.peek() in "?*+{":
            c = self.take()
            if c == "*":
                tree = ("star", tree)
            elif c == "+":
                tree = ("concat", [tree, ("star", tree)])
            elif c == "?":
                tree = ("or", [tree, ("concat", [])])
            else:
                low, high = self.counts()
                optional = ("or", [tree, ("concat", [])])
                tree = ("concat", [tree] * low + [optional] * (high - low))
        return tree

    def counts(self):
        text = ""
        while self.peek() != "}":
            text += self.take()
        self.take()
        parts = text.split(",")
        if not all(p.isdigit() for p in parts) or len(parts) > 2:
            self.error("only {m} and {m,n} are known")
        low, high = int(parts[0]), int(parts[-1])
        if low > high or high > REPEAT_MAX:
            self.error(f"repeats up to {REPEAT_MAX} are known")
        return low, high

    def atom(self):
        c = self.take()
        if c == "(":
            if self.peek() == "?":
                self.error("only plain groups are known")
            tree = self.alternatives()
            if self.take() != ")":
                self.error("unclosed group")
            return tree
        if c == "[":
            return ("set", self.char_class())
        if c == "\\":
            return ("set", frozenset([self.escaped()]))
        if c in ".^$*+?{}])":
            self.error(f"{c!r} is not known here")
        return ("set", frozenset([ord(c)]))

    def escaped(self):
        c = self.take()
        if c.isalnum():
            self.error(f"escape \\{c} is not known")
        return ord(c)

    def char_class(self):
        if self.peek() == "^":
            self.error("negated classes are not known")
        members = set()
        while self.peek() != "]":
            c = self.take()
            low = self.escaped() if c == "\\" else ord(c)
            if self.peek() == "-" and self.text[self.at + 1:self.at + 2] not in ("]", ""):
                self.take()
                c = self.take()
                high = self.escaped() if c == "\\" else ord(c)
                if high < low:
                    self.error("empty range")
                members.update(range(low, high + 1))
            else:
                members.add(low)
        self.take()
        return frozenset(members)


class _Nfa:
    def __init__(self):
        self.empty, self.moves = [], []  # per state: states reached for free; (set, state) pairs

    def state(self):
        self.empty.append([])
        self.moves.append([])
        return len(self.empty) - 1

    def build(self, tree):
        kind, what = tree
        if kind == "set":
            a, b = self.state(), self.state()
            self.moves[a].append((what, b))
            return a, b
        if kind == "concat":
            a = b = self.state()
            for item in what:
                start, end = self.build(item)
                self.empty[b].append(start)
                b = end
            return a, b
        a, b = self.state(), self.state()
        for item in what if kind == "or" else [what]:
            start, end = self.build(item)
            self.empty[a].append(start)
            self.empty[end].append(b)
            if kind == "star":
                self.empty[end].append(start)
        if kind == "star":
            self.empty[a].append(b)
        return a, b

    def closure(self, states):
        reached, work = set(states), list(states)
        while work:
            for target in self.empty[work.pop()]:
                if target not in reached:
                    reached.add(target)
                    work.append(target)
        return frozenset(reached)


def _determinise(nfa, start, end):
    sets = {s for moves in nfa.moves for s, _ in moves}
    columns = {}
    classes = []
    for byte in range(256):
        signature = frozenset(i for i, s in enumerate(sorted(sets, key=sorted)) if byte in s)
        classes.append(columns.setdefault(signature, len(columns)))
    sample = [classes.index(c) for c in range(len(columns))]
    first = nfa.closure([start])
    numbers, order, table = {first: 0}, [first], []
    for states in order:
        row = []
        for byte in sample:
            target = nfa.closure([t for s in states for chars, t in nfa.moves[s] if byte in chars])
            if target not in numbers:
                numbers[target] = len(order)
                order.append(target)
            row.append(numbers[target])
        table.append(row)
    return classes, table, 0, [end in states for states in order]


def _minimise(classes, table, start, accepting):
    block = [int(a) for a in accepting]
    while True:
        signatures = {}
        new = [signatures.setdefault((block[i], *(block[t] for t in row)), len(signatures))
               for i, row in enumerate(table)]
        if len(signatures) == len(set(block)):
            break
        block = new
    numbers = {}
    for b in block:
        numbers.setdefault(b, len(numbers))
    rows, accepts = [None] * len(numbers), [False] * len(numbers)
    for i, row in enumerate(table):
        rows[numbers[block[i]]] = [numbers[block[t]] for t in row]
        accepts[numbers[block[i]]] = accepting[i]
    return classes, rows, numbers[block[start]], accepts
