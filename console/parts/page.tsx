import { ArrowLeft } from "lucide-preact";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Link } from "wouter-preact";
import type { Refusal } from "../live/api.ts";
import { Loading, RefusalNotice } from "./notice.tsx";

interface HeadingProps {
  title: string;
  /** Where the page above this one is. */
  above?: { href: string; name: string };
  children?: ComponentChildren;
}

/** What the page of one thing shows before it has it: that it is on its way, or why it is not here and where to go instead. */
export function Absent(
  { refusal, above }: { refusal: Refusal | null; above: { href: string; name: string } },
) {
  if (refusal === null) return <Loading />;
  return (
    <>
      <Heading title={refusal.status === 404 ? "Not here (any more)" : "Not shown"} above={above} />
      <div class="scrolled">
        <RefusalNotice refusal={refusal} />
      </div>
    </>
  );
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
