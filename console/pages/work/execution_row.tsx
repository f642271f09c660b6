import type { ComponentChildren } from "preact";
import type { Schemas } from "../../live/api.ts";
import type { Resource } from "../../live/resource.ts";
import { takeFirstLine } from "../../parts/format.ts";
import { Row, ShortListing } from "../../parts/listing.tsx";
import { Ago, Duration } from "../../parts/time.tsx";
import { formatErrorLine, getShownStatus } from "./failure.ts";

/** The rows of an overview have no error. */
type Summary = Schemas["Overview"]["recent_executions"][number] & { error?: string };

export function ExecutionRow({ execution }: { execution: Summary }) {
  const { id, status, worker_name, instruction, started_at, completed_at, created_at } = execution;
  return (
    <Row
      href={`/console/executions/${id}`}
      status={getShownStatus(execution)}
      title={takeFirstLine(instruction)}
      notes={[worker_name, formatErrorLine({ error: "", ...execution })]}
      side={
        <>
          <Duration from={started_at} to={status === "running" ? null : completed_at ?? started_at} />
          <Ago at={completed_at ?? started_at ?? created_at} />
        </>
      }
    />
  );
}

export function ExecutionList({ list, empty }: { list: Resource<Summary[]>; empty: ComponentChildren }) {
  return <ShortListing list={list} empty={empty} row={(one) => <ExecutionRow execution={one} />} />;
}
