import type { ComponentChildren } from "preact";

/** Named facts of one thing, such as its times. */
export function Facts({ children }: { children: ComponentChildren }) {
  return <dl class="facts">{children}</dl>;
}

interface FactProps {
  name: string;
  children: ComponentChildren;
  /** Takes the room of two. */
  wide?: boolean;
}

/** One fact; nothing when there is none. */
export function Fact({ name, children, wide = false }: FactProps) {
  if (children === null || children === "" || children === undefined || children === false) return null;
  return (
    <div class={wide ? "wide" : ""}>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}
