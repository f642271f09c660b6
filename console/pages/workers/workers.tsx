import { FolderTree, Plus } from "lucide-preact";
import { useState } from "preact/hooks";
import { Link } from "wouter-preact";
import { useAddress } from "../../live/address.ts";
import type { Worker } from "../../live/api.ts";
import { may } from "../../live/session.ts";
import { workers } from "../../live/workers.ts";
import { Choice } from "../../parts/field.tsx";
import { firstLine } from "../../parts/format.ts";
import { Heading } from "../../parts/page.tsx";
import { Empty, Loading } from "../../parts/notice.tsx";
import { Rows } from "../../parts/rows.tsx";
import { Status } from "../../parts/status.tsx";
import { Departments } from "./departments.tsx";
import { below, flat, useDepartments } from "./department_tree.ts";

const ROW_PX = 60;

/** All workers, by department, name and state (contract 17). */
export function WorkersPage() {
  const [{ department, status, name }, change] = useAddress("department", "status", "name");
  const [editing, setEditing] = useState(false);
  const tree = useDepartments();
  const all = workers.value;
  const places = flat(tree.data ?? []);
  const inside = department === "" ? null : below(tree.data ?? [], department);
  const shown = (all ?? []).filter((worker) =>
    (status === "" || worker.status === status) &&
    worker.name.toLowerCase().includes(name.toLowerCase()) &&
    (inside === null || worker.departments.some(({ id }) => inside.has(id)))
  );
  return (
    <>
      <Heading title="Workers">
        <button type="button" onClick={() => setEditing(true)}>
          <FolderTree size={16} aria-hidden="true" /> Departments
        </button>
        {may("write:workers") && (
          <Link href="/console/workers/new" class="button primary">
            <Plus size={16} aria-hidden="true" /> New worker
          </Link>
        )}
      </Heading>
      <div class="filters">
        <input
          type="search"
          aria-label="Name"
          placeholder="Name"
          value={name}
          onInput={(event) => change({ name: event.currentTarget.value })}
        />
        {places.length > 0 && (
          <Choice
            bare
            label="Department"
            value={department}
            onChange={(value) => change({ department: value })}
            options={[
              ["", "Every department"],
              ...places.map(({ id, name: one, depth }) => [id, `${"\u2003".repeat(depth)}${one}`] as const),
            ]}
          />
        )}
        <Choice
          bare
          label="Status"
          value={status}
          onChange={(value) => change({ status: value })}
          options={STATUSES}
        />
        {all !== undefined && <p class="count">{shown.length} of {all.length}</p>}
      </div>
      {all === undefined
        ? <Loading />
        : shown.length === 0
        ? <NoWorkers none={all.length === 0} clear={() => change({ department: "", status: "", name: "" })} />
        : (
          <Rows
            label="Workers"
            count={shown.length}
            height={ROW_PX}
            row={(index) => {
              const worker = shown[index];
              return worker && <WorkerRow worker={worker} />;
            }}
          />
        )}
      {editing && <Departments tree={tree} onClose={() => setEditing(false)} />}
    </>
  );
}

const STATUSES = [
  ["", "Every status"],
  ...["idle", "working", "waiting", "paused"].map((one) => [one, one] as const),
  ["unavailable", "not available"],
] as const;

function WorkerRow({ worker }: { worker: Worker }) {
  const { id, name, description, status, engine, departments, runs_on } = worker;
  return (
    <Link href={`/console/workers/${id}`} class="row">
      <Status of={status} bare />
      <span class="row-main">
        <span class="row-title">{name}</span>
        <span class="row-note">{firstLine(description)}</span>
      </span>
      <span class="row-side">
        <span>{[engine || "default engine", ...runs_on].join(" · ")}</span>
        <span>{departments.map((one) => one.name).join(", ")}</span>
      </span>
    </Link>
  );
}

function NoWorkers({ none, clear }: { none: boolean; clear: () => void }) {
  if (none) {
    return (
      <Empty title="There is no worker yet.">
        <Link href="/console/workers/new" class="button primary">Make one</Link>
      </Empty>
    );
  }
  return (
    <Empty title="No worker matches.">
      <button type="button" onClick={clear}>Show all</button>
    </Empty>
  );
}
