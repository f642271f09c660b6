import { marked, type MarkedToken, type Token, type Tokens } from "marked";
import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";

// Only these lead anywhere; `javascript:` and `data:` stay text.
const SAFE_LINK = /^(https?:|mailto:|\/(?!\/)|#)/i;
const ENTITIES: Record<string, string> = { amp: "&", lt: "<", gt: ">", quot: '"', "#39": "'" };
// Nobody writes so deep. What does so all the same must not cost the page its stack.
const DEPTH_MAX = 50;

/**
 * Markdown as elements, whatever the text is. marked only cuts it into tokens: markup of the writer stays text (facts,
 * console 3.2).
 */
export function Markdown({ text }: { text: string }) {
  const tokens = useMemo(() => tokensOf(text), [text]);
  return <div class="markdown">{tokens === null ? <pre tabIndex={0}>{text}</pre> : all(tokens, 0)}</div>;
}

// marked calls itself for each level, so that a text of nothing but `>` ends its stack.
function tokensOf(text: string): Token[] | null {
  try {
    return marked.lexer(text);
  } catch {
    return null;
  }
}

/** Tokens that stand within so many others. */
function all(tokens: readonly Token[] | undefined, depth: number): ComponentChildren {
  return tokens?.map((token, index) => <One key={index} token={token as MarkedToken} depth={depth} />);
}

function One({ token, depth }: { token: MarkedToken; depth: number }) {
  if (depth > DEPTH_MAX) return <>{token.raw}</>;
  const inner = (tokens: readonly Token[] | undefined) => all(tokens, depth + 1);
  switch (token.type) {
    case "heading":
      return <p class={`heading level-${Math.min(token.depth, 3)}`}>{inner(token.tokens)}</p>;
    case "paragraph":
      return <p>{inner(token.tokens)}</p>;
    case "text":
      return <>{"tokens" in token && token.tokens ? inner(token.tokens) : decoded(token.text)}</>;
    case "escape":
      return <>{decoded(token.text)}</>;
    case "strong":
      return <strong>{inner(token.tokens)}</strong>;
    case "em":
      return <em>{inner(token.tokens)}</em>;
    case "del":
      return <del>{inner(token.tokens)}</del>;
    case "codespan":
      return <code>{decoded(token.text)}</code>;
    case "code":
      return <pre tabIndex={0}><code>{token.text}</code></pre>;
    case "br":
      return <br />;
    case "hr":
      return <hr />;
    case "blockquote":
      return <blockquote>{inner(token.tokens)}</blockquote>;
    case "list":
      return <List token={token} depth={depth} />;
    case "checkbox":
    case "space":
    case "def":
      return null;
    case "link":
      return <SafeLink href={token.href}>{inner(token.tokens)}</SafeLink>;
    case "image":
      // Loading it would tell its host who reads this.
      return <SafeLink href={token.href}>{token.text === "" ? "image" : token.text}</SafeLink>;
    case "table":
      return <Table token={token} depth={depth} />;
    default:
      return <>{token.raw}</>;
  }
}

function SafeLink({ href, children }: { href: string; children: ComponentChildren }) {
  if (!SAFE_LINK.test(href)) return <span title={href}>{children}</span>;
  return <a href={href} rel="noopener noreferrer nofollow" target="_blank">{children}</a>;
}

function List({ token, depth }: { token: Tokens.List; depth: number }) {
  const items = token.items.map((item, index) => (
    <li key={index}>
      {item.task && <input type="checkbox" checked={item.checked === true} disabled aria-label="done" />}
      {all(item.tokens, depth + 1)}
    </li>
  ));
  return token.ordered ? <ol start={Number(token.start) || 1}>{items}</ol> : <ul>{items}</ul>;
}

function Table({ token, depth }: { token: Tokens.Table; depth: number }) {
  return (
    <div class="table-box" tabIndex={0} role="region" aria-label="table">
      <table>
        <thead>
          <tr>{token.header.map((cell, index) => <th key={index}>{all(cell.tokens, depth + 1)}</th>)}</tr>
        </thead>
        <tbody>
          {token.rows.map((row, index) => (
            <tr key={index}>
              {row.map((cell, column) => <td key={column}>{all(cell.tokens, depth + 1)}</td>)}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function decoded(text: string): string {
  return text.replace(/&(amp|lt|gt|quot|#39);/g, (whole, name: string) => ENTITIES[name] ?? whole);
}
