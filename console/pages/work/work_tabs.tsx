import { Tabs } from "../../parts/tabs.tsx";

/** The two views of work: what is to be done, and what was run. */
export function WorkTabs({ current }: { current: string }) {
  return (
    <Tabs
      label="Work"
      current={current}
      tabs={[["/console/executions", "Runs"], ["/console/tasks", "Tasks"]]}
    />
  );
}
