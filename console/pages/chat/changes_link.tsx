import { GitBranch } from "lucide-preact";
import { Link } from "wouter-preact";
import { useGet } from "../../live/resource.ts";

/** Leads to all changes on the branch of a conversation. Shows nothing when its latest run has no branch. */
export function ChangesLink({ sessionKey }: { sessionKey: string }) {
  const { data } = useGet(
    "/api/executions",
    { query: { session_id: sessionKey, page_size: 1 } },
    (event) => event.session_key === sessionKey && event.kind.startsWith("execution."),
  );
  const latest = data?.[0];
  if (latest === undefined || latest.head_commit === "") return null;
  return (
    <Link
      href={`/console/executions/${latest.id}?view=changes&since=base`}
      class="changes-link"
      title={latest.branch}
    >
      <GitBranch size={16} aria-hidden="true" /> Changes
    </Link>
  );
}
