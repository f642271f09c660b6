import type { ComponentChildren } from "preact";
import { Heading } from "../../parts/page.tsx";
import { Tabs } from "../../parts/tabs.tsx";
import { COST_TABS, listTabs } from "../../live/tabs.ts";

/** The head of the pages about costs, with the tabs that the user has a scope for. */
export function CostsHead({ current, children }: { current: string; children?: ComponentChildren }) {
  return (
    <>
      <Heading title="Costs">{children}</Heading>
      <Tabs label="Costs" current={current} tabs={listTabs(COST_TABS)} />
    </>
  );
}
