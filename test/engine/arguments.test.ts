import { describe, expect, it } from "vitest";
import { splitArgs } from "../../src/engine/arguments.ts";

describe("splitArgs", () => {
  it("splits like a shell, without expansion", () => {
    expect(splitArgs("")).toEqual([]);
    expect(splitArgs("  -a   --b=c ")).toEqual(["-a", "--b=c"]);
    expect(splitArgs(`-m 'a b' "c d" e\\ f`)).toEqual(["-m", "a b", "c d", "e f"]);
    expect(splitArgs("--x=$HOME *.ts ~/x")).toEqual(["--x=$HOME", "*.ts", "~/x"]);
    expect(splitArgs(`''`)).toEqual([""]);
  });

  it("refuses anything but a plain list of arguments", () => {
    for (
      const text of ["'open", '"open', "a\\", "a | b", "a; b", "a && b", "a > f", "$(x)", "a # b"]
    ) {
      expect(() => splitArgs(text), text).toThrow();
    }
  });
});
