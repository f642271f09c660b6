import { ArrowLeft } from "lucide-preact";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Link } from "wouter-preact";

interface HeadingProps {
  title: string;
  /** Where the page above this one is. */
  above?: { href: string; name: string };
  children?: ComponentChildren;
}

let first = true;

/** The head of a page: its name, which is also the window's, and its actions. A new page takes the focus here. */
export function Heading({ title, above, children }: HeadingProps) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = `${title} · svc`;
  }, [title]);
  useEffect(() => {
    if (!first && document.activeElement?.matches("input, textarea, select") !== true) {
      heading.current?.focus();
    }
    first = false;
  }, []);
  return (
    <header class="page-head">
      {above !== undefined && (
        <Link href={above.href} class="above">
          <ArrowLeft size={16} aria-hidden="true" /> {above.name}
        </Link>
      )}
      <div class="page-title">
        <h1 tabIndex={-1} ref={heading}>{title}</h1>
        {children !== undefined && <div class="actions">{children}</div>}
      </div>
    </header>
  );
}
