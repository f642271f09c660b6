import { OctagonX, RotateCcw } from "lucide-preact";
import { api, load, type Schemas } from "../../live/api.ts";
import { Button, LinkButton } from "../../parts/button.tsx";
import { stripText } from "../../parts/plain_text.ts";
import { formatFailure } from "../work/failure.ts";

interface FailureCardProps {
  execution: Schemas["Execution"];
}

/** A failed run in a conversation, with the next steps. */
export function FailureCard({ execution: { id, worker_name, failure, error } }: FailureCardProps) {
  const params = { path: { id } };
  return (
    <div class="failure-card">
      <p>
        <OctagonX size={16} aria-hidden="true" />{" "}
        <strong>{worker_name}’s run {formatFailure(failure)}</strong>
      </p>
      {error !== "" && <p class="failure-text">{stripText(error)}</p>}
      <div class="actions">
        <LinkButton href={`/console/executions/${id}`} class="small">Open run</LinkButton>
        <Button
          class="small"
          icon={RotateCcw}
          scope="write:executions"
          press={() => load(api.POST("/api/executions/{id}/retry", { params, body: {} }))}
          done="Run started again"
        >
          Retry
        </Button>
      </div>
    </div>
  );
}
