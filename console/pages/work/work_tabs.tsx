import { Tabs } from "../../parts/tabs.tsx";

const TABS = [["/console/executions", "Runs"], ["/console/tasks", "Tasks"]] as const;

/** The tabs of the work pages. */
export function WorkTabs({ current }: { current: string }) {
  return <Tabs label="Work" current={current} tabs={TABS} />;
}
