import { marked, type MarkedToken, type Token, type Tokens } from "marked";
import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";

// Only these lead anywhere; `javascript:` and `data:` stay text.
const SAFE_LINK = /^(https?:|mailto:|\/(?!\/)|#)/i;
const ENTITIES: Record<string, string> = { amp: "&", lt: "<", gt: ">", quot: '"', "#39": "'" };

/** Markdown as elements. marked only cuts the text into tokens: markup of the writer stays text (facts, console 3.2). */
export function Markdown({ text }: { text: string }) {
  const tokens = useMemo(() => marked.lexer(text), [text]);
  return <div class="markdown">{all(tokens)}</div>;
}

function all(tokens: readonly Token[] | undefined): ComponentChildren {
  return tokens?.map((token, index) => <One key={index} token={token as MarkedToken} />);
}

function One({ token }: { token: MarkedToken }) {
  switch (token.type) {
    case "heading":
      return <p class={`heading level-${Math.min(token.depth, 3)}`}>{all(token.tokens)}</p>;
    case "paragraph":
      return <p>{all(token.tokens)}</p>;
    case "text":
      return <>{"tokens" in token && token.tokens ? all(token.tokens) : decoded(token.text)}</>;
    case "escape":
      return <>{decoded(token.text)}</>;
    case "strong":
      return <strong>{all(token.tokens)}</strong>;
    case "em":
      return <em>{all(token.tokens)}</em>;
    case "del":
      return <del>{all(token.tokens)}</del>;
    case "codespan":
      return <code>{decoded(token.text)}</code>;
    case "code":
      return <pre tabIndex={0}><code>{token.text}</code></pre>;
    case "br":
      return <br />;
    case "hr":
      return <hr />;
    case "blockquote":
      return <blockquote>{all(token.tokens)}</blockquote>;
    case "list":
      return <List token={token} />;
    case "checkbox":
    case "space":
    case "def":
      return null;
    case "link":
      return <SafeLink href={token.href}>{all(token.tokens)}</SafeLink>;
    case "image":
      // Loading it would tell its host who reads this.
      return <SafeLink href={token.href}>{token.text === "" ? "image" : token.text}</SafeLink>;
    case "table":
      return <Table token={token} />;
    default:
      return <>{token.raw}</>;
  }
}

function SafeLink({ href, children }: { href: string; children: ComponentChildren }) {
  if (!SAFE_LINK.test(href)) return <span title={href}>{children}</span>;
  return <a href={href} rel="noopener noreferrer nofollow" target="_blank">{children}</a>;
}

function List({ token }: { token: Tokens.List }) {
  const items = token.items.map((item, index) => (
    <li key={index}>
      {item.task && <input type="checkbox" checked={item.checked === true} disabled aria-label="done" />}
      {all(item.tokens)}
    </li>
  ));
  return token.ordered ? <ol start={Number(token.start) || 1}>{items}</ol> : <ul>{items}</ul>;
}

function Table({ token }: { token: Tokens.Table }) {
  return (
    <div class="table-box" tabIndex={0} role="region" aria-label="table">
      <table>
        <thead>
          <tr>{token.header.map((cell, index) => <th key={index}>{all(cell.tokens)}</th>)}</tr>
        </thead>
        <tbody>
          {token.rows.map((row, index) => (
            <tr key={index}>{row.map((cell, column) => <td key={column}>{all(cell.tokens)}</td>)}</tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function decoded(text: string): string {
  return text.replace(/&(amp|lt|gt|quot|#39);/g, (whole, name: string) => ENTITIES[name] ?? whole);
}
