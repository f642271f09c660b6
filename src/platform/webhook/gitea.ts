import type { Reading } from "./event.ts";
import { formatUnknown, readComment, readGitHub, readLabeled, readOpened, readReview } from "./github.ts";
import { Payload } from "./payload.ts";

/** Reads a delivery of Gitea or Forgejo. Checks have the form of GitHub. `kind` is the header X-Gitea-Event. */
export function readGitea(kind: string, body: unknown): Reading {
  const payload = new Payload(body);
  const action = payload.text("action");
  switch (kind) {
    case "issues":
      return action === "opened" ? readOpened(payload) : readLabels(payload, kind, action);
    case "issue_label":
      return readLabels(payload, kind, action);
    // Comments on pull requests have a kind of their own, with the pull request as issue.
    case "issue_comment":
    case "pull_request_comment":
      if (payload.has("review")) return readGiteaReview(payload, kind);
      return action === "created" ? readComment(payload) : formatUnknown(kind, action);
    case "pull_request_approved":
    case "pull_request_rejected":
    case "pull_request_review_approved":
    case "pull_request_review_rejected":
    case "pull_request_review_comment":
      return readGiteaReview(payload, kind);
    default:
      return readGitHub(kind, body);
  }
}

// The event has all labels of the issue, not the one that changed.
function readLabels(payload: Payload, kind: string, action: string): Reading {
  if (action !== "label_updated") return formatUnknown(kind, action);
  const labels = payload.list("issue.labels").map((label) => label.text("name"));
  return labels.length === 0 ? "the issue has no label" : readLabeled(payload, labels.join(", "));
}

const VERDICTS: Record<string, string> = { approved: "approved", rejected: "changes requested" };

function readGiteaReview(payload: Payload, kind: string): Reading {
  const word = /(approved|rejected)$/.exec(payload.text("review.type") || kind)?.[1] ?? "";
  return readReview(payload, VERDICTS[word] ?? "commented", payload.text("review.content"));
}
