import { load } from "../../src/base/lazy_import.ts";

/** Color functions, or plain ones. */
export type Style = Record<"bold" | "dim" | "red" | "green" | "yellow" | "cyan", (text: string) => string>;

/** Whether a stream has colors: only a terminal, unless NO_COLOR is set or TERM is `dumb` (contract 6). */
export function wantsColors(isTerminal: boolean, env: Record<string, string>): boolean {
  return isTerminal && !env.NO_COLOR && env.TERM !== "dumb";
}

export async function createStyle(isTerminal: boolean, env: Record<string, string>): Promise<Style> {
  if (!wantsColors(isTerminal, env)) {
    const plain = (value: string) => value;
    return { bold: plain, dim: plain, red: plain, green: plain, yellow: plain, cyan: plain };
  }
  return (await load<typeof import("./colors.ts")>("./colors.ts", import.meta.url)).createColors();
}
