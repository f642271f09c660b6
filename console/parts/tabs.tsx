import { Link } from "wouter-preact";

/** Pages that belong together, by links, so that each has its own address. */
export function Tabs({ label, tabs, current }: {
  label: string;
  tabs: readonly (readonly [href: string, name: string])[];
  current: string;
}) {
  return (
    <nav class="tabs" aria-label={label}>
      {tabs.map(([href, name]) => (
        <Link key={href} href={href} {...(href === current ? { "aria-current": "page" as const } : {})}>
          {name}
        </Link>
      ))}
    </nav>
  );
}
