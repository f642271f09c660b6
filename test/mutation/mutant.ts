import ts from "typescript";

/** One small change of a source file that a good test notices. */
export interface Mutant {
  /** Path from the root of the project. */
  file: string;
  /** From 1. */
  line: number;
  start: number;
  end: number;
  before: string;
  after: string;
}

const SWAPS = new Map<ts.SyntaxKind, string>([
  [ts.SyntaxKind.EqualsEqualsEqualsToken, "!=="],
  [ts.SyntaxKind.ExclamationEqualsEqualsToken, "==="],
  [ts.SyntaxKind.LessThanToken, "<="],
  [ts.SyntaxKind.LessThanEqualsToken, "<"],
  [ts.SyntaxKind.GreaterThanToken, ">="],
  [ts.SyntaxKind.GreaterThanEqualsToken, ">"],
  [ts.SyntaxKind.AmpersandAmpersandToken, "||"],
  [ts.SyntaxKind.BarBarToken, "&&"],
  [ts.SyntaxKind.PlusToken, "-"],
  [ts.SyntaxKind.MinusToken, "+"],
]);

// In SQL: a condition that goes, a comparison that turns round, an order that turns round.
const SQL_SWAPS: readonly [RegExp, string][] = [
  // Not what closes the text, or a bracket of the line before.
  [/\n\s+and [^\n()`]+(?:\((?:[^\n()`]|\([^\n()`]*\))*\)[^\n()`]*)*/g, ""],
  [/ and (?=[a-z_.]+ (?:=|<|>|is|in|not))/g, " or "],
  [/ <= /g, " < "],
  [/ > \?/g, " >= ?"],
  [/ desc\b/g, ""],
  [/ where (?=[a-z])/g, " where 1 = 1 or "],
];
const SQL = /\b(select|insert|update|delete)\b/;

/** Every mutant of a file, in the order of their places. */
export function mutantsOf(file: string, text: string): Mutant[] {
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
  const found: Mutant[] = [];
  const add = (start: number, end: number, after: string) => {
    const line = source.getLineAndCharacterOfPosition(start).line + 1;
    found.push({ file, line, start, end, before: text.slice(start, end), after });
  };
  const visit = (node: ts.Node): void => {
    // Types have no behaviour, and words for people are not promised letter by letter.
    if (ts.isTypeNode(node) || ts.isInterfaceDeclaration(node) || ts.isImportDeclaration(node)) return;
    if (isWords(node) || isTuning(node) || isNoBehaviour(node)) return;
    mutate(node, text, add);
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}

type Add = (start: number, end: number, after: string) => void;

function mutate(node: ts.Node, text: string, add: Add): void {
  const [start, end] = [node.getStart(), node.getEnd()];
  if (ts.isBinaryExpression(node)) {
    const swap = SWAPS.get(node.operatorToken.kind);
    const joins = /^[+]$/.test(node.operatorToken.getText()) && /["'`]/.test(node.getText());
    if (swap !== undefined && !joins) add(node.operatorToken.getStart(), node.operatorToken.getEnd(), swap);
  } else if (ts.isIfStatement(node) || ts.isWhileStatement(node)) {
    const { expression } = node;
    for (const value of ["true", "false"]) {
      if (value === "true" && ts.isWhileStatement(node)) continue;
      add(expression.getStart(), expression.getEnd(), value);
    }
  } else if (ts.isConditionalExpression(node)) {
    add(start, end, `(${node.whenTrue.getText()})`);
    add(start, end, `(${node.whenFalse.getText()})`);
  } else if (ts.isExpressionStatement(node) && !ts.isStringLiteral(node.expression)) {
    add(start, end, ";");
  } else if (ts.isSpreadElement(node) && ts.isArrayLiteralExpression(node.parent)) {
    add(start, end, "...[]");
  } else if (ts.isNumericLiteral(node) && !ts.isEnumMember(node.parent)) {
    add(start, end, String(Number(node.text.replaceAll("_", "")) + 1));
  } else if (ts.isStringLiteral(node) || ts.isNoSubstitutionTemplateLiteral(node) || isTemplatePart(node)) {
    mutateSql(start, text.slice(start, end), add);
  }
}

function isTemplatePart(node: ts.Node): boolean {
  return node.kind === ts.SyntaxKind.TemplateHead || node.kind === ts.SyntaxKind.TemplateMiddle ||
    node.kind === ts.SyntaxKind.TemplateTail;
}

function mutateSql(start: number, sql: string, add: Add): void {
  if (!SQL.test(sql) && !/\bwhere\b|\band\b/.test(sql)) return;
  for (const [pattern, after] of SQL_SWAPS) {
    for (const { index, 0: before } of sql.matchAll(pattern)) {
      add(start + index, start + index + before.length, after);
    }
  }
}

// What is said to people: a call of the log, and the texts of an error (its code and its condition are promised).
function isWords(node: ts.Node): boolean {
  if (ts.isExpressionStatement(node)) return isWords(node.expression);
  if (ts.isCallExpression(node)) return /^log\.\w+$/.test(node.expression.getText());
  const { parent } = node;
  return parent !== undefined && ts.isNewExpression(parent) && /Error$/.test(parent.expression.getText()) &&
    (ts.isConditionalExpression(node) || ts.isTemplateExpression(node) || ts.isBinaryExpression(node));
}

// A place for the tests to break something at, and a field that is set from its parameter: without it nothing works.
function isNoBehaviour(node: ts.Node): boolean {
  if (!ts.isExpressionStatement(node)) return false;
  return /^(faultPoint\(|this\.#(\w+) = (options\.|parts\.)?\2;)/.test(node.getText());
}

// A pause, a size of a cache, a share of work: one more or one less breaks no promise, and no test may depend on it.
function isTuning(node: ts.Node): boolean {
  if (!ts.isVariableDeclaration(node) || !ts.isSourceFile(node.parent.parent.parent)) return false;
  return /_(MS|S|MINUTES|DAYS|KEPT_BYTES|PER_YIELD|STATEMENTS_MAX|REMEMBERED_MAX)$/.test(node.name.getText());
}
