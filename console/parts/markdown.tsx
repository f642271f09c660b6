import { marked, type MarkedToken, type Token, type Tokens } from "marked";
import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import { isSafeLink } from "./safe_link.ts";

const ENTITIES: Record<string, string> = { amp: "&", lt: "<", gt: ">", quot: '"', "#39": "'" };
// Deeper nesting could overflow the stack of the page.
const DEPTH_MAX = 50;

/** Any text as Markdown. `marked` only splits it into tokens, so HTML in it stays text. */
export function Markdown({ text }: { text: string }) {
  const tokens = useMemo(() => tokenize(text), [text]);
  return (
    <div class="markdown">{tokens === null ? <pre tabIndex={0}>{text}</pre> : renderTokens(tokens, 0)}</div>
  );
}

// The library `marked` recurses for each level of quotes, so a text of only `>` overflows its stack.
function tokenize(text: string): Token[] | null {
  try {
    return marked.lexer(text);
  } catch {
    return null;
  }
}

function renderTokens(tokens: readonly Token[] | undefined, depth: number): ComponentChildren {
  return tokens?.map((token, index) => <TokenView key={index} token={token as MarkedToken} depth={depth} />);
}

function TokenView({ token, depth }: { token: MarkedToken; depth: number }) {
  if (depth > DEPTH_MAX) return <>{token.raw}</>;
  const inner = (tokens: readonly Token[] | undefined) => renderTokens(tokens, depth + 1);
  switch (token.type) {
    case "heading":
      return <p class={`heading level-${Math.min(token.depth, 3)}`}>{inner(token.tokens)}</p>;
    case "paragraph":
      return <p>{inner(token.tokens)}</p>;
    case "text":
      return <>{"tokens" in token && token.tokens ? inner(token.tokens) : decodeEntities(token.text)}</>;
    case "escape":
      return <>{decodeEntities(token.text)}</>;
    case "strong":
      return <strong>{inner(token.tokens)}</strong>;
    case "em":
      return <em>{inner(token.tokens)}</em>;
    case "del":
      return <del>{inner(token.tokens)}</del>;
    case "codespan":
      return <code>{decodeEntities(token.text)}</code>;
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
      // Loading the image would reveal the reader to its host.
      return <SafeLink href={token.href}>{token.text === "" ? "image" : token.text}</SafeLink>;
    case "table":
      return <Table token={token} depth={depth} />;
    default:
      return <>{token.raw}</>;
  }
}

function SafeLink({ href, children }: { href: string; children: ComponentChildren }) {
  if (!isSafeLink(href, location.origin)) return <span title={href}>{children}</span>;
  return <a href={href} rel="noopener noreferrer nofollow" target="_blank">{children}</a>;
}

function List({ token, depth }: { token: Tokens.List; depth: number }) {
  const items = token.items.map((item, index) => (
    <li key={index}>
      {item.task && <input type="checkbox" checked={item.checked === true} disabled aria-label="done" />}
      {renderTokens(item.tokens, depth + 1)}
    </li>
  ));
  return token.ordered ? <ol start={Number(token.start) || 1}>{items}</ol> : <ul>{items}</ul>;
}

function Table({ token, depth }: { token: Tokens.Table; depth: number }) {
  return (
    <div class="table-box" tabIndex={0} role="region" aria-label="Table">
      <table>
        <thead>
          <tr>
            {token.header.map((cell, index) => (
              <th key={index} class={cell.align ?? ""}>{renderTokens(cell.tokens, depth + 1)}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {token.rows.map((row, index) => (
            <tr key={index}>
              {row.map((cell, column) => (
                <td key={column} class={cell.align ?? ""}>{renderTokens(cell.tokens, depth + 1)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function decodeEntities(text: string): string {
  return text.replace(/&(amp|lt|gt|quot|#39);/g, (whole, name: string) => ENTITIES[name] ?? whole);
}
