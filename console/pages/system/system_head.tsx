import type { ComponentChildren } from "preact";
import { Heading } from "../../parts/page.tsx";
import { Tabs } from "../../parts/tabs.tsx";
import { listTabs, SYSTEM_TABS } from "../../live/tabs.ts";

/** The head of a system page: its buttons, and the tabs that the user has a scope for. */
export function SystemHead({ current, children }: { current: string; children?: ComponentChildren }) {
  return (
    <>
      <Heading title="System">{children}</Heading>
      <Tabs label="System" current={current} tabs={listTabs(SYSTEM_TABS)} />
    </>
  );
}
