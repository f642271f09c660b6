import ts from "typescript";

/** A small change of a source file that a good test notices. */
export interface Mutant {
  /** Path from the root of the project. */
  file: string;
  /** Counted from 1. */
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

// In SQL: removed conditions, reversed comparisons, reversed orders.
const SQL_SWAPS: readonly [RegExp, string][] = [
  // Excludes the end of the text and closing brackets of the previous line.
  [/\n\s+and [^\n()`]+(?:\((?:[^\n()`]|\([^\n()`]*\))*\)[^\n()`]*)*/g, ""],
  [/ and (?=[a-z_.]+ (?:=|<|>|is|in|not))/g, " or "],
  [/ <= /g, " < "],
  [/ > \?/g, " >= ?"],
  [/ desc\b/g, ""],
  [/ where (?=[a-z])/g, " where 1 = 1 or "],
];
const SQL = /\b(select|insert|update|delete)\b/;

/** Lists all mutants of a file in order of position. */
export function buildMutants(file: string, text: string): Mutant[] {
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
  const found: Mutant[] = [];
  const add = (start: number, end: number, after: string) => {
    const line = source.getLineAndCharacterOfPosition(start).line + 1;
    found.push({ file, line, start, end, before: text.slice(start, end), after });
  };
  const visit = (node: ts.Node): void => {
    // Types have no behavior, and no promise covers the wording of texts.
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

// Texts for people: log calls and error messages. Promises cover an error's code and condition.
function isWords(node: ts.Node): boolean {
  if (ts.isExpressionStatement(node)) return isWords(node.expression);
  if (ts.isCallExpression(node)) return /^log\.\w+$/.test(node.expression.getText());
  const { parent } = node;
  return parent !== undefined && ts.isNewExpression(parent) && /Error$/.test(parent.expression.getText()) &&
    (ts.isConditionalExpression(node) || ts.isTemplateExpression(node) || ts.isBinaryExpression(node));
}

// Fault points, and fields set from a parameter of the same name: without them nothing works.
function isNoBehaviour(node: ts.Node): boolean {
  if (!ts.isExpressionStatement(node)) return false;
  return /^(faultPoint\(|this\.#(\w+) = (options\.|parts\.)?\2;)/.test(node.getText());
}

// Pauses, cache sizes and shares of work: a difference of one breaks no promise.
function isTuning(node: ts.Node): boolean {
  if (!ts.isVariableDeclaration(node) || !ts.isSourceFile(node.parent.parent.parent)) return false;
  return /_(MS|S|MINUTES|DAYS|KEPT_BYTES|PER_YIELD|STATEMENTS_MAX|REMEMBERED_MAX)$/.test(node.name.getText());
}
