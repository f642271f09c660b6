import { FolderTree, Plus } from "lucide-preact";
import { useState } from "preact/hooks";
import { Link } from "wouter-preact";
import { useAddress } from "../../live/address.ts";
import type { Schemas } from "../../live/api.ts";
import { useGet } from "../../live/resource.ts";
import { hasScope } from "../../live/session.ts";
import { workers } from "../../live/workers.ts";
import { Button, LinkButton } from "../../parts/button.tsx";
import { FilterBar } from "../../parts/listing.tsx";
import { Empty, Loading } from "../../parts/notice.tsx";
import { Heading } from "../../parts/page.tsx";
import { listStatusOptions, Status } from "../../parts/status.tsx";
import { type Column, DataTable, type RowGroup } from "../../parts/data_table.tsx";
import { type Activity, DayStrip, LastRun, SuccessRate, WaitingTasks } from "./activity.tsx";
import {
  type Department,
  listDepartmentOptions,
  listDescendants,
  useDepartments,
} from "./department_tree.ts";
import { DepartmentsDialog } from "./departments.tsx";

type Worker = Schemas["Worker"];

const STATUSES = ["idle", "working", "waiting", "paused", "unavailable"];

export function Page() {
  const [values, change] = useAddress("department", "status", "name");
  const { department, status, name } = values;
  const [editing, setEditing] = useState(false);
  const departments = useDepartments();
  const tree = departments.data ?? [];
  const all = workers.value;
  const inside = department === "" ? null : listDescendants(tree, department);
  const matches = all?.filter((worker) =>
    (status === "" || worker.status === status) &&
    worker.name.toLowerCase().includes(name.toLowerCase()) &&
    (inside === null || worker.departments.some(({ id }) => inside.has(id)))
  );
  const clear = () => change({ department: "", status: "", name: "" });
  return (
    <>
      <Heading title="Workers">
        <Button icon={FolderTree} press={() => setEditing(true)}>Departments</Button>
        <LinkButton href="/console/workers/new" icon={Plus} class="primary" scope="write:workers">
          New worker
        </LinkButton>
      </Heading>
      <FilterBar
        filters={[
          { name: "name", label: "Name" },
          tree.length > 0 && {
            name: "department",
            label: "Department",
            options: [["", "All departments"], ...listDepartmentOptions(tree)],
          },
          { name: "status", label: "Status", options: listStatusOptions("All statuses", STATUSES) },
        ]}
        values={values}
        change={change}
        count={all && `${matches?.length} of ${all.length}`}
      />
      <div class="scrolled">
        {matches === undefined
          ? <Loading />
          : matches.length > 0
          ? <WorkerTable workers={matches} departments={tree.filter(({ id }) => inside?.has(id) !== false)} />
          : all?.length === 0
          ? (
            <Empty title="No workers yet.">
              <LinkButton href="/console/workers/new" class="primary" scope="write:workers">
                Create worker
              </LinkButton>
            </Empty>
          )
          : (
            <Empty title="No matches.">
              <button type="button" onClick={clear}>Clear filters</button>
            </Empty>
          )}
      </div>
      {editing && <DepartmentsDialog departments={departments} onClose={() => setEditing(false)} />}
    </>
  );
}

interface TableProps {
  workers: readonly Worker[];
  departments: readonly Department[];
}

function WorkerTable(props: TableProps) {
  return hasScope("read:executions") ? <ActiveTable {...props} /> : <DataTable {...buildTable(props, [])} />;
}

function ActiveTable(props: TableProps) {
  const read = useGet("/api/usage/workers", { query: { days: 7 } }, /^(worker|task|execution|budget)\./).data;
  const byId = new Map(read?.workers.map((activity) => [activity.worker_id, activity]));
  const show = (cell: (activity: Activity) => preact.ComponentChildren) => ({ id }: Worker) => {
    const activity = byId.get(id);
    return activity !== undefined && cell(activity);
  };
  const columns: Column<Worker>[] = [
    { title: "Last run", cell: show(({ last_run }) => <LastRun run={last_run} />) },
    {
      title: "Last 7 days",
      extra: true,
      cell: show((activity) => <DayStrip days={read?.days ?? []} activity={activity} />),
    },
    {
      title: "Succeeded",
      number: true,
      extra: true,
      cell: show((activity) => <SuccessRate activity={activity} />),
    },
    { title: "Waiting", number: true, cell: show((activity) => <WaitingTasks activity={activity} />) },
  ];
  return <DataTable {...buildTable(props, columns)} />;
}

function buildTable({ workers: shown, departments }: TableProps, columns: Column<Worker>[]) {
  return {
    label: "Workers",
    groups: groupByDepartment(shown, departments),
    rowKey: ({ id }: Worker) => id,
    columns: [
      { title: "Name", cell: (worker: Worker) => <WorkerName worker={worker} /> },
      ...columns,
      {
        title: "Engine",
        extra: true,
        cell: ({ engine, runs_on }: Worker) => (
          <span class="clip quiet">{[engine || "default", ...runs_on].join(" · ")}</span>
        ),
      },
      {
        title: "Description",
        extra: true,
        cell: ({ description }: Worker) => <span class="clip quiet" title={description}>{description}</span>,
      },
    ],
  };
}

function WorkerName({ worker: { id, name, status } }: { worker: Worker }) {
  return (
    <Link href={`/console/workers/${id}`} class="row-name">
      <Status value={status} bare />
      <span>{name}</span>
    </Link>
  );
}

/** Groups workers by department, in the order of the tree. A worker in several departments is in several groups. */
function groupByDepartment(shown: readonly Worker[], departments: readonly Department[]): RowGroup<Worker>[] {
  const sorted = shown.toSorted((one, other) => one.name.localeCompare(other.name));
  if (departments.length === 0) return [{ title: "", items: sorted }];
  const groups = departments.map(({ id, name }) => ({
    title: name,
    items: sorted.filter((worker) => worker.departments.some((one) => one.id === id)),
  }));
  const others = sorted.filter((worker) => worker.departments.length === 0);
  return [...groups, { title: "No department", items: others }].filter(({ items }) => items.length > 0);
}
