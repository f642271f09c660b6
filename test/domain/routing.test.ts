import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Candidate, routeByRules, routeWithoutModel } from "../../src/domain/chat/routing.ts";

const worker = (id: string, name: string, description = "", more: Partial<Candidate> = {}): Candidate => ({
  id,
  name,
  description,
  paused: false,
  departments: [],
  ...more,
});

const ADA = worker("a", "Ada");
const LOVELACE = worker("l", "Ada Lovelace");
const BOB = worker("b", "Bob", "walks the dogs");
const ALL = [ADA, LOVELACE, BOB];

const target = (text: string, candidates: Candidate[] = ALL, own: string | null = null) => {
  const route = routeByRules(text, candidates, own);
  return route.to === "worker" ? [route.workerId, route.instruction] : route.to;
};

describe("routeByRules (contract 4.3)", () => {
  it.each([
    ["@Ada hi", ["a", "hi"]],
    ["@ada: hi", ["a", "hi"]],
    ["  @ADA,  do it", ["a", "do it"]],
    ["@Ada Lovelace write", ["l", "write"]],
    ["@ada lovelace", ["l", "@ada lovelace"]],
    ["@Adam hi", "nobody"],
    ["@AdaLovelace hi", "nobody"],
    ["@Zebediah hi", "bee"],
    ["please @bob go", ["b", "please @bob go"]],
    ["@ada and @ada again", ["a", "and @ada again"]],
    ["@ada and @bob", "nobody"],
    ["write to ada@example.org", "bee"],
    ["x@bob hi", "bee"],
    ["(@bob)", ["b", "(@bob)"]],
    ["@bob's turn", ["b", "@bob's turn"]],
    ["@bob\u2019s turn", ["b", "@bob\u2019s turn"]],
    ["@bob\u02bcs turn", ["b", "@bob\u02bcs turn"]],
    ["@BOB\uff07s", ["b", "@BOB\uff07s"]],
    ["@ada lovelace' turn", ["l", "@ada lovelace' turn"]],
    ["@bob 'quoted'", ["b", "'quoted'"]],
    ["@", "bee"],
    ["@@bob hi", ["b", "@@bob hi"]],
    ["@bob-bot hi", "bee"],
    ["@bob.example hi", "bee"],
    ["ask @bob.", ["b", "ask @bob."]],
    ["@bob - hi", ["b", "hi"]],
    ["@bob-- hi", ["b", "hi"]],
    ["no mention", "bee"],
  ])("%j goes to %j", (text, expected) => expect(target(text)).toEqual(expected));

  it("a name that two workers share matches neither worker", () => {
    expect(target("@ada hi", [ADA, worker("a2", "ada")])).toBe("bee");
  });

  it("matches names in any script, composed or not", () => {
    const zoe = worker("z", "Zoë");
    expect(target("@zoe\u0308 hi", [zoe])).toEqual(["z", "hi"]);
    expect(target("@小明 你好", [worker("x", "小明")])).toEqual(["x", "你好"]);
    expect(target("@小明你好", [worker("x", "小明")])).toBe("bee");
    expect(target("@कि hi", [worker("x", "क")])).toBe("bee");
  });

  it("leaves the instruction unchanged: a file's name may be composed or not", () => {
    expect(target("@bob read cafe\u0301.txt")).toEqual(["b", "read cafe\u0301.txt"]);
    expect(target("read cafe\u0301.txt, @bob")).toEqual(["b", "read cafe\u0301.txt, @bob"]);
    expect(target("@zoe\u0308 read e\u0301", [worker("z", "Zoë")])).toEqual(["z", "read e\u0301"]);
  });

  it("falls back to the session's default worker, and a mention precedes it", () => {
    expect(target("hi", ALL, "b")).toEqual(["b", "hi"]);
    expect(target("@ada hi", ALL, "b")).toEqual(["a", "hi"]);
    expect(target("`@ada` hi", ALL, "b")).toEqual(["b", "`@ada` hi"]);
    expect(target("hi", ALL, "gone")).toBe("bee");
  });

  it.each([
    ["@ada @bob hi", ["@Ada", "@Bob: walks the dogs"]],
    ["@bob ask @ada lovelace", ["@Bob: walks the dogs", "@Ada Lovelace"]],
    ["@ada one\n@bob two\n@ada lovelace three", ["@Ada", "@Bob: walks the dogs", "@Ada Lovelace"]],
  ])("answers %j with a hint, also in a session that has a worker", (text, names) => {
    for (const own of [null, "a", "l"]) {
      expect(routeByRules(text, ALL, own)).toMatchObject({
        to: "nobody",
        text: [
          "This message names several workers. Write to one worker at a time, in a separate message to each:",
          ...names.map((name) => `- ${name}`),
        ].join("\n"),
      });
    }
  });

  it("routes a message with two names to the worker that is named outside of code and quotes", () => {
    expect(target("> @ada wrote\n@bob answer her")).toEqual(["b", "> @ada wrote\n@bob answer her"]);
    expect(target("@bob run `mail @ada`")).toEqual(["b", "run `mail @ada`"]);
  });

  it.each([
    "run `npm i @bob` please",
    "``a ` @bob``",
    "`one\n@bob two`",
    "```\n@bob\n```",
    "```sh\r\n@bob\r\n```\r\nhi",
    "```\n@bob",
    "~~~\n```\n@bob\n~~~",
    "````\n```\n@bob\n```\n````",
    "- one\n\n   ```\n   @bob\n   ```",
    "1. ```\n   @bob\n   ```",
    "> @bob",
    ">@bob said so",
    "hi\n  > > @bob",
    "> ```\n> @bob\n> ```",
    "- > @bob",
    ">>> long\n@bob",
    "see ```one\n\n@bob``` ok",
    "```a\nb```\n> @bob\nhi",
  ])("finds no mention in code and quotes: %j", (text) => {
    expect(target(text)).toBe("bee");
    expect(target(text, ALL, "l")).toEqual(["l", text]);
  });

  it.each([
    "it's ` a tick, @bob",
    "a ` b\n\n@bob c ` d",
    "`code` @bob `code`",
    "```\ncode\n```\n@bob",
    "```one\ntwo```\n@bob",
    "```one\ntwo``` @bob",
    "```one\ntwo```\n@bob\n```three\nfour```",
    "look ```one\n```\n@bob",
    "~~struck~~ @bob",
    "> quoted\n@bob answer",
    "> ```\n> code\n@bob answer",
    "a > b @bob",
    "-> @bob",
    "\\`@bob\\`",
    "`` ` @bob",
  ])("finds the mention outside of code and quotes: %j", (text) => {
    expect(target(text)).toEqual(["b", text]);
  });

  it("never goes to a worker that the text names only in code or quotes", () => {
    const name = fc.constantFrom("@ada", "@bob", "@ada lovelace");
    const words = fc.array(fc.oneof(name, fc.constantFrom("x", "```", "~~~", "    ", "> y")), {
      maxLength: 4,
    });
    const fenced = fc.tuple(
      fc.constantFrom("", "  ", "> ", "> > ", "- "),
      fc.constantFrom("````", "~~~~", "`````"),
      words,
      fc.constantFrom("\n", "\r\n"),
    ).map(([prefix, marks, lines, end]) => {
      const following = prefix.replace("-", " ");
      return [prefix + marks, ...lines.map((line) => following + line), following + marks].join(end);
    });
    const inline = fc.tuple(fc.constantFrom("`", "``"), name).map(([ticks, code]) =>
      `see ${ticks}${code}${ticks}`
    );
    const quoted = name.map((one) => `> ${one}`);
    const prose = fc.constantFrom("hello", "# Head", "- one", "a * b", "it's");
    const hidden = fc.array(fc.oneof(fenced, inline, quoted, prose), { maxLength: 8 });
    fc.assert(
      fc.property(hidden, hidden, fc.constantFrom("\n\n", "\r\n\r\n"), (before, after, between) => {
        expect(target([...before, ...after].join(between))).toBe("bee");
        const named = [...before, "and @bob", ...after].join(between);
        expect(target(named)).toEqual(["b", named.trim()]);
      }),
      { numRuns: 1_000, seed: 37 },
    );
  });

  it("never throws for any message", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: "binary" }),
        fc.string({ unit: "binary", minLength: 1 }),
        (text, name) => {
          routeByRules(`@${name} ${text}`, [worker("x", name), ADA], null);
          routeWithoutModel(text, [worker("x", name, text), ADA]);
        },
      ),
    );
  });
});

describe("routeWithoutModel (contract 4.4)", () => {
  const invoices = worker("i", "Ivy", "Checks invoices and receipts", { departments: ["Finance"] });
  const dogs = worker("d", "Dan", "Walks dogs");

  it("takes the best overlap of words, plural or not, departments included", () => {
    expect(routeWithoutModel("Please check this INVOICE", [invoices, dogs])).toMatchObject({
      workerId: "i",
      reason: "best match: check, invoice",
    });
    expect(routeWithoutModel("something for finance", [invoices, dogs])).toMatchObject({ workerId: "i" });
    expect(routeWithoutModel("my dog", [invoices, dogs])).toMatchObject({ workerId: "d" });
  });

  it("takes the only worker when words do not decide, and none that is paused", () => {
    expect(routeWithoutModel("hello", [dogs])).toMatchObject({
      workerId: "d",
      reason: "Dan is the only worker",
    });
    expect(routeWithoutModel("hello", [dogs, { ...invoices, paused: true }])).toMatchObject({
      workerId: "d",
    });
    expect(routeWithoutModel("check this invoice", [{ ...invoices, paused: true }])).toMatchObject({
      to: "nobody",
    });
  });

  it("lists the workers when none matches, or two match equally", () => {
    expect(routeWithoutModel("hello", [invoices, dogs])).toMatchObject({
      to: "nobody",
      text: expect.stringContaining("- @Ivy: Checks invoices"),
    });
    expect(routeWithoutModel("invoice for a dog", [invoices, dogs])).toMatchObject({ to: "nobody" });
    expect(routeWithoutModel("hello", [])).toMatchObject({
      text: expect.stringContaining("svc ctl worker create"),
    });
    const many = Array.from({ length: 30 }, (_, index) => worker(String(index), `w${index}`));
    expect(routeWithoutModel("hello", many)).toMatchObject({ text: expect.stringMatching(/and 22 more$/) });
  });
});

describe("a mention that names no worker", () => {
  const shouty = worker("s", "Shouty", "Answers in capitals");
  const ada = worker("a", "Ada Smith");
  const all = [shouty, ada];

  it("goes to none and says which worker was meant, even with a default or an only worker", () => {
    const expected = {
      to: "nobody",
      text: "No worker named Shoty. Did you mean @Shouty?",
      reason: "no worker is named Shoty",
    };
    expect(routeByRules("@Shoty hello", all, null)).toEqual(expected);
    expect(routeByRules("@Shoty hello", all, "a")).toEqual(expected);
    expect(routeByRules("please ask @shoty, now", [shouty], null)).toMatchObject({
      text: "No worker named shoty. Did you mean @Shouty?",
    });
    expect(routeByRules("@Ada Smiht: hello", all, null)).toMatchObject({
      text: "No worker named Ada. Did you mean @Ada Smith?",
    });
  });

  it("is no typing error in an address, in code, or of another word", () => {
    for (const text of ["mail shoty@shoty.org", "`@Shoty`", "> @Shoty", "@types/node is missing", "@ok"]) {
      expect([text, routeByRules(text, all, "s")]).toEqual([text, expect.objectContaining({ to: "worker" })]);
    }
  });

  it("at the start lists few workers when none resembles it and no model decides", () => {
    const many = Array.from({ length: 30 }, (_, index) => worker(String(index), `Worker ${index}`));
    const { text } = routeWithoutModel("@zoe hello", many) as { text: string };
    expect(text).toMatch(/^No worker named zoe\. The workers are @Worker 0, .* and 22 more\.$/);
    expect(text.length).toBeLessThan(200);
    expect(routeWithoutModel("ask @zoe about capitals", all)).toMatchObject({ workerId: "s" });
  });
});
