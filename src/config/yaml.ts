import { type Document, LineCounter, parseDocument, stringify } from "yaml";

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
  return { document, position };
}

export function formatYaml(value: unknown): string {
  return stringify(value);
}
