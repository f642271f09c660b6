import {
  type Document,
  isAlias,
  isScalar,
  LineCounter,
  type Node,
  parseDocument,
  stringify,
  visit,
} from "yaml";
import { PROTOTYPE_KEY } from "../domain/call/json.ts";

/** Parses a configuration file. Throws an error whose message starts with line and column. */
export function parseYaml(
  text: string,
): { document: Document.Parsed; position: (offset: number) => { line: number; column: number } } {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const position = (offset: number) => {
    const { line, col } = lines.linePos(offset);
    return { line, column: col };
  };
  const [problem] = document.errors;
  if (problem !== undefined) {
    const { line, column } = position(problem.pos[0]);
    const words = problem.code === "MULTIPLE_DOCS"
      ? "has more than one document"
      : `not valid YAML: ${problem.message}`;
    throw new Error(`${line}:${column}: ${words}`);
  }
  const key = findPrototypeKey(document);
  if (key !== null) {
    const { line, column } = position(key.range?.[0] ?? 0);
    throw new Error(`${line}:${column}: ${PROTOTYPE_KEY} is not a key`);
  }
  return { document, position };
}

function findPrototypeKey(document: Document.Parsed): Node | null {
  let found: Node | null = null;
  visit(document, {
    Pair(_, { key }) {
      const name = isAlias(key) ? key.resolve(document) : key;
      if (!isScalar(name) || name.value !== PROTOTYPE_KEY) return undefined;
      found = key as Node;
      return visit.BREAK;
    },
  });
  return found;
}

/** Formats a value as YAML. `literal` keeps the lines of texts as they are. */
export function formatYaml(value: unknown, { literal = false } = {}): string {
  return stringify(value, literal ? { blockQuote: "literal", lineWidth: 0 } : {});
}
