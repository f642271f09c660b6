import ts from "typescript";
import { listSourceFiles, readText } from "./tree.ts";

export interface Text {
  file: string;
  line: number;
  text: string;
}

/** Phrases of the private dialect that CONTRIBUTING.md rules out. */
const PHRASES: readonly RegExp[] = [
  /(^|[.:;] )(What|Whoever|Who|Whatever|Whose|That) (?!is |are |does |do )/,
  /\b(nobody|somebody|anybody|whoever|everybody|someone)\b/i,
  /\b(is|are|was|were|be|been) (told|asked|said|looked|shown|let|heard|seen|known|given)\b/i,
  /\b(goes on|go on|begins?|began|for ever|beside|behind it|by itself|by themselves|of its own)\b/i,
  /\b(so many|but for|in vain|at once|is over|are over|mended|stands|door|room|tells)\b/i,
];

/** Comments start with the noun that they are about, not with a pronoun. */
const PRONOUN_FIRST = /^(One|It|They|These|Those|That|This|Its|Their|Both|Some|None|Nothing|Nobody)\b/;

export function findDialect(text: string): string | null {
  for (const phrase of PHRASES) {
    const found = phrase.exec(text);
    if (found !== null) return found[0].trim();
  }
  return null;
}

/** Finds a phrase of the dialect in a comment, including a pronoun as its first word. */
export function findDialectInComment(text: string): string | null {
  return PRONOUN_FIRST.exec(text)?.[0] ?? findDialect(text);
}

// The name of a function at the start of a test's name, such as splitArgs, or with () anywhere.
const FUNCTION_NAME = /^[a-z]+[A-Z]\w*|\b[a-z]+[A-Z]\w*(?=\(\))/g;

/** Finds the function names in a text that do not occur as identifiers in `code`. */
export function findUnknownFunctions(text: string, code: ReadonlySet<string>): string[] {
  return (text.match(FUNCTION_NAME) ?? []).filter((name) => !code.has(name) && !OTHER_NAMES.has(name));
}

const OTHER_NAMES = new Set(["libSQL", "macOS"]);

/** Reads the identifiers of source files, without comments and strings. */
export function readIdentifiers(...folders: string[]): Set<string> {
  const names = new Set<string>();
  for (const file of listSourceFiles(...folders)) {
    const source = parseFile(file);
    const visit = (node: ts.Node) => {
      if (ts.isIdentifier(node) || ts.isPrivateIdentifier(node)) names.add(node.text.replace("#", ""));
      ts.forEachChild(node, visit);
    };
    visit(source);
  }
  return names;
}

export function readComments(...folders: string[]): Text[] {
  return listSourceFiles(...folders).flatMap(readFileComments);
}

function readFileComments(file: string): Text[] {
  const text = readText(file);
  const source = parseFile(file);
  const ranges = new Map<number, ts.CommentRange>();
  const visit = (node: ts.Node) => {
    if (node.kind === ts.SyntaxKind.JsxText) return;
    for (const range of ts.getLeadingCommentRanges(text, node.getFullStart()) ?? []) {
      ranges.set(range.pos, range);
    }
    for (const range of ts.getTrailingCommentRanges(text, node.getEnd()) ?? []) ranges.set(range.pos, range);
    node.getChildren(source).forEach(visit);
  };
  visit(source);
  const comments: (Text & { end: number; block: boolean })[] = [];
  for (const range of [...ranges.values()].sort((a, b) => a.pos - b.pos)) {
    const line = source.getLineAndCharacterOfPosition(range.pos).line + 1;
    const block = range.kind === ts.SyntaxKind.MultiLineCommentTrivia;
    const words = strip(text.slice(range.pos, range.end));
    const last = comments.at(-1);
    if (!block && last?.block === false && last.end === line - 1) {
      last.text += ` ${words}`;
      last.end = line;
    } else comments.push({ file, line, end: line, block, text: words });
  }
  return comments.filter(({ text: words }) => !/^(@|deno-|!|#)/.test(words) && words !== "")
    .map(({ file, line, text: words }) => ({ file, line, text: words }));
}

function strip(comment: string): string {
  return comment.replace(/^\/\*+|\*\/$/g, "").split("\n").map((line) =>
    line.replace(/^\s*(\/\/+|\*)?\s?/, "")
  )
    .join(" ").replace(/\s+/g, " ").trim();
}

const TEXT_MIN_WORDS = 3;

/**
 * Reads texts that a user may see: JSX text and strings of three or more words that are neither SQL nor code.
 */
export function readUserTexts(...folders: string[]): Text[] {
  return listSourceFiles(...folders).flatMap((file) => {
    const source = parseFile(file);
    const texts: Text[] = [];
    const add = (node: ts.Node, words: string) => {
      const text = words.replace(/\s+/g, " ").trim();
      if (isProse(text)) {
        texts.push({ file, line: source.getLineAndCharacterOfPosition(node.getStart()).line + 1, text });
      }
    };
    const visit = (node: ts.Node) => {
      if (ts.isJsxText(node)) add(node, node.text);
      else if (ts.isStringLiteralLike(node)) add(node, node.text);
      else if (ts.isTemplateExpression(node)) {
        add(node, node.head.text + node.templateSpans.map(({ literal }) => `…${literal.text}`).join(""));
      }
      ts.forEachChild(node, visit);
    };
    visit(source);
    return texts;
  });
}

function isProse(text: string): boolean {
  const words = text.split(" ").filter((word) => /^[("'`]?[A-Za-z][a-z']*[)"'`.,:;?!]*$/.test(word));
  return words.length >= TEXT_MIN_WORDS && !SQL.test(text);
}

const SQL =
  /^(--|select|insert|update|delete|create|drop|with|from|where|and|or|order|left|join|exists|not|case|coalesce|values|on|json|union|group|limit|set|pragma)\b(?!.*\.$)/;

// Such as `it`, `it.each([...])` or `describe.skipIf(...)`, but not a call of a method of a variable named `it`.
const TEST_FUNCTION =
  /^(it|test|cell|describe(Console|Pins)?)(\.(each|for|skip|skipIf|runIf|only|todo|fails|concurrent|sequential))?(\(|$)/;

export function readTestNames(...folders: string[]): Text[] {
  return listSourceFiles(...folders).filter((file) => file.endsWith(".test.ts")).flatMap((file) => {
    const source = parseFile(file);
    const names: Text[] = [];
    const visit = (node: ts.Node) => {
      if (
        ts.isCallExpression(node) &&
        TEST_FUNCTION.test(node.expression.getText(source))
      ) {
        const [name] = node.arguments;
        if (name !== undefined && (ts.isStringLiteralLike(name) || ts.isTemplateExpression(name))) {
          const text = name.getText(source).slice(1, -1);
          names.push({ file, line: source.getLineAndCharacterOfPosition(name.getStart()).line + 1, text });
        }
      }
      ts.forEachChild(node, visit);
    };
    visit(source);
    return names;
  });
}

function parseFile(file: string): ts.SourceFile {
  return ts.createSourceFile(file, readText(file), ts.ScriptTarget.Latest, true);
}
