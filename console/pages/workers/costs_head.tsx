import type { ComponentChildren } from "preact";
import { hasScope } from "../../live/session.ts";
import { Heading } from "../../parts/page.tsx";
import { Tabs } from "../../parts/tabs.tsx";

const TABS: readonly (readonly [href: string, name: string, scope: string])[] = [
  ["/console/costs", "By worker and day", "read:executions"],
  ["/console/system/usage", "Usage", "read:executions"],
  ["/console/budgets", "Budgets and engines", "read:budgets"],
];

/** The head of the pages about costs, with the tabs that the user has a scope for. */
export function CostsHead({ current, children }: { current: string; children?: ComponentChildren }) {
  const tabs = TABS.filter(([, , scope]) => hasScope(scope)).map(([href, name]) => [href, name] as const);
  return (
    <>
      <Heading title="Costs">{children}</Heading>
      <Tabs label="Costs" current={current} tabs={tabs} />
    </>
  );
}
