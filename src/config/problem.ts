import { isMap, isPair, isScalar, type Node } from "yaml";
import { z } from "zod";
import { findKeyShape, type Shape } from "./environment.ts";
import type { ConfigSource } from "./file.ts";

/** Formats a file's problems with their positions. `fromEnvironment` maps keys to variables. */
export function formatProblems(
  error: z.ZodError,
  source: ConfigSource,
  { schema, fromEnvironment = new Map() }: { schema: z.ZodType; fromEnvironment?: Map<string, string> },
): string[] {
  return error.issues.flatMap((issue) => {
    const path = issue.path.map(String);
    if (issue.code === "unrecognized_keys") {
      return issue.keys.map((key) => {
        const full = [...path, key];
        const name = fromEnvironment.get(full.join("."));
        const known = Object.keys(shapeAt(schema, path)?.properties ?? {}).join(", ");
        return `${name ? `${name}: ` : formatPosition(source, full, true)}${
          full.join(".")
        }: unknown key. Known keys: ${known}.`;
      });
    }
    const name = fromEnvironment.get(path.join("."));
    return [`${name ? `${name}: ` : formatPosition(source, path)}${path.join(".")}: ${issue.message}`];
  });
}

function shapeAt(schema: z.ZodType, path: string[]): Shape | undefined {
  return path.reduce<Shape | undefined>(findKeyShape, z.toJSONSchema(schema, { io: "input" }) as Shape);
}

/** Formats the position of a key or its value as `file:line:column: `, or "" when the file lacks it. */
export function formatPosition(source: ConfigSource, path: string[], atKey = false): string {
  if (source.path === null || source.document === null) return "";
  const parent = source.document.getIn(path.slice(0, -1), true);
  let node = source.document.getIn(path, true) as Node | undefined;
  if (atKey && isMap(parent)) {
    const pair = parent.items.find((item) =>
      isPair(item) && isScalar(item.key) && String(item.key.value) === path.at(-1)
    );
    node = pair?.key as Node | undefined;
  }
  const offset = node?.range?.[0];
  // A missing key has no position, so its parent's key has to do.
  if (offset === undefined) {
    return path.length > 1 ? formatPosition(source, path.slice(0, -1), true) : `${source.path}: `;
  }
  const { line, column } = source.position(offset);
  return `${source.path}:${line}:${column}: `;
}
