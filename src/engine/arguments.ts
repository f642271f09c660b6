import { parse } from "shell-quote";

/** Splits a worker's engine arguments like a shell, without expanding anything. Throws a plain Error when they do not parse. */
export function splitArgs(text: string): string[] {
  if (!isBalanced(text)) throw new Error("has a quote that is not closed");
  if (text.includes("`")) {
    throw new Error("must be plain arguments, without command substitution");
  }
  // Variables are not replaced: the arguments are not a shell script.
  return parse(text, (name) => `$${name}`).map((part) => {
    if (typeof part === "string") return part;
    if ("op" in part && part.op === "glob") return part.pattern;
    throw new Error(
      `must be plain arguments; quote ${"op" in part ? part.op : "#"} to mean the character itself`,
    );
  });
}

function isBalanced(text: string): boolean {
  return /^(?:[^'"\\]|\\[\s\S]|'[^']*'|"(?:[^"\\]|\\[\s\S])*")*$/.test(text);
}
