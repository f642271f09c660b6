import { Heading } from "../../parts/page.tsx";
import { Tabs } from "../../parts/tabs.tsx";

const TABS = [["/console/executions", "Runs"], ["/console/tasks", "Tasks"]] as const;

export function WorkHead({ current }: { current: string }) {
  return (
    <>
      <Heading title="Work" />
      <Tabs label="Work" current={current} tabs={TABS} />
    </>
  );
}
