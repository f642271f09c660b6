import { listEnvironmentOverrides } from "./file.ts";

/**
 * Sets the environment's keys in the input and returns the variable name of each key. `findShape` describes one top-level
 * key, because describing all takes 20 ms at every start.
 */
export function applyEnvironment(
  input: Record<string, unknown>,
  env: Record<string, string>,
  findShape: (key: string) => Shape | undefined,
): Map<string, string> {
  const names = new Map<string, string>();
  const shapes = new Map<string, Shape | undefined>();
  for (const { name, path, text } of listEnvironmentOverrides(env)) {
    const [top = "", ...deeper] = path;
    if (!shapes.has(top)) shapes.set(top, findShape(top));
    let target = input;
    for (const key of path.slice(0, -1)) {
      const inner = target[key];
      target = (target[key] = typeof inner === "object" && inner !== null ? inner : {}) as Record<
        string,
        unknown
      >;
    }
    target[path.at(-1) ?? ""] = parseValue(text, deeper.reduce(findKeyShape, shapes.get(top))?.type);
    names.set(path.join("."), name);
  }
  return names;
}

/** The used subset of JSON Schema. */
export interface Shape {
  type?: string;
  properties?: Record<string, Shape>;
  additionalProperties?: Shape | boolean;
}

export function findKeyShape(shape: Shape | undefined, key: string): Shape | undefined {
  const { properties = {}, additionalProperties: rest } = shape ?? {};
  return Object.hasOwn(properties, key) ? properties[key] : (typeof rest === "object" ? rest : undefined);
}

function parseValue(text: string, type: string | undefined): unknown {
  if (type === "integer" || type === "number") return /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : text;
  if (type === "boolean") return text === "true" || text === "false" ? text === "true" : text;
  if (type === "array") return text === "" ? [] : text.split(",").map((part) => part.trim());
  return text;
}
