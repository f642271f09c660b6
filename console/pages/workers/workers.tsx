import { FolderTree, Plus } from "lucide-preact";
import { useState } from "preact/hooks";
import { useAddress } from "../../live/address.ts";
import type { Schemas } from "../../live/api.ts";
import { workers } from "../../live/workers.ts";
import { Button, LinkButton } from "../../parts/button.tsx";
import { takeFirstLine } from "../../parts/format.ts";
import { FilteredListing, Row } from "../../parts/listing.tsx";
import { Empty } from "../../parts/notice.tsx";
import { Heading } from "../../parts/page.tsx";
import { listStatusOptions } from "../../parts/status.tsx";
import { listDepartmentOptions, listDescendants, useDepartments } from "./department_tree.ts";
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
  return (
    <>
      <Heading title="Workers">
        <Button icon={FolderTree} press={() => setEditing(true)}>Departments</Button>
        <LinkButton href="/console/workers/new" icon={Plus} class="primary" scope="write:workers">
          New worker
        </LinkButton>
      </Heading>
      <FilteredListing
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
        list={{ data: matches, error: null, reload: () => {} }}
        label="Workers"
        row={(worker) => <WorkerRow worker={worker} />}
        empty={
          <Empty title="No workers yet.">
            <LinkButton href="/console/workers/new" class="primary" scope="write:workers">
              Create worker
            </LinkButton>
          </Empty>
        }
      />
      {editing && <DepartmentsDialog departments={departments} onClose={() => setEditing(false)} />}
    </>
  );
}

function WorkerRow({ worker }: { worker: Worker }) {
  const { id, name, description, status, engine, departments, runs_on } = worker;
  return (
    <Row
      href={`/console/workers/${id}`}
      status={status}
      title={name}
      notes={[takeFirstLine(description)]}
      side={
        <>
          <span>{[engine || "default engine", ...runs_on].join(" · ")}</span>
          <span>{departments.map((one) => one.name).join(", ")}</span>
        </>
      }
    />
  );
}
