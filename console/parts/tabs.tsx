import { useEffect, useRef } from "preact/hooks";
import { Link } from "wouter-preact";

/** Links to related pages, so that each has its own address. */
export function Tabs({ label, tabs, current }: {
  label: string;
  tabs: readonly (readonly [href: string, name: string])[];
  current: string;
}) {
  const bar = useRef<HTMLElement>(null);
  // A phone shows a part of a long bar: the part with the current tab.
  useEffect(() => {
    bar.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
  }, [current]);
  return (
    <nav class="tabs" aria-label={label} ref={bar}>
      {tabs.map(([href, name]) => (
        <Link key={href} href={href} {...(href === current ? { "aria-current": "page" as const } : {})}>
          {name}
        </Link>
      ))}
    </nav>
  );
}
