import { ArrowLeft } from "lucide-preact";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Link } from "wouter-preact";
import type { Resource } from "../live/resource.ts";
import { ErrorNotice, Loading } from "./notice.tsx";

interface Parent {
  href: string;
  name: string;
}

interface HeadingProps {
  title: string;
  above?: Parent;
  children?: ComponentChildren;
}

let first = true;

/** The head of a page: its name, which is also the window's title, and its buttons. A new page takes the focus here. */
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

interface DetailPageProps<T> {
  read: Resource<T>;
  above: Parent;
  title: (item: T) => string;
  actions?: (item: T) => ComponentChildren;
  children: (item: T) => ComponentChildren;
}

/** The page of one object: its loading state, its error with a link back, or its content. */
export function DetailPage<T>({ read, above, title, actions, children }: DetailPageProps<T>) {
  if (read.data === undefined) {
    if (read.error === null) return <Loading />;
    return (
      <>
        <Heading title={read.error.status === 404 ? "Not found" : "Cannot load this page"} above={above} />
        <div class="scrolled">
          <ErrorNotice error={read.error} />
        </div>
      </>
    );
  }
  return (
    <>
      <Heading title={title(read.data)} above={above}>{actions?.(read.data)}</Heading>
      <div class="scrolled">{children(read.data)}</div>
    </>
  );
}

export function Section({ title, actions, children }: {
  title: ComponentChildren;
  actions?: ComponentChildren;
  children: ComponentChildren;
}) {
  return (
    <section>
      {actions === undefined ? <h2>{title}</h2> : (
        <div class="section-head">
          <h2>{title}</h2>
          {actions}
        </div>
      )}
      {children}
    </section>
  );
}

export type NamedFacts = Record<string, ComponentChildren>;

/** Facts by name. A fact without a value is left out, and a wide fact takes two columns. */
export function Facts({ values, wide = [] }: { values: NamedFacts; wide?: readonly string[] }) {
  const given = Object.entries(values).filter(([, value]) =>
    value !== null && value !== "" && value !== undefined && value !== false
  );
  return (
    <dl class="facts">
      {given.map(([name, value]) => (
        <div key={name} class={wide.includes(name) ? "wide" : ""}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
