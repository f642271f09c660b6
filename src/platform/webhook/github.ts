import type { ForgeChange } from "../../domain/work/forge_branch.ts";
import { type Account, addAddress, joinTitle, listQuotes, type Reading } from "./event.ts";
import { Payload } from "./payload.ts";

const FAILED = ["failure", "timed_out", "startup_failure", "error"];

/** Reads a delivery of GitHub. Gitea has the same form for most events. */
export function readGitHub(kind: string, body: unknown): Reading {
  const payload = new Payload(body);
  const action = payload.text("action");
  switch (kind) {
    case "issues":
      if (action === "opened") return readOpened(payload);
      return action === "labeled"
        ? readLabeled(payload, payload.text("label.name"))
        : formatUnknown(kind, action);
    case "issue_comment":
      return action === "created" ? readComment(payload) : formatUnknown(kind, action);
    case "pull_request_review":
      return action === "submitted"
        ? readReview(payload, payload.text("review.state"), payload.text("review.body"))
        : formatUnknown(kind, action);
    case "pull_request_review_comment":
      return action === "created" ? readReviewComment(payload) : formatUnknown(kind, action);
    case "check_run":
    case "workflow_run":
      return action === "completed" ? readCheck(payload, kind) : formatUnknown(kind, action);
    case "status":
      return readStatus(payload);
    default:
      return formatUnknown(kind, action);
  }
}

export function formatUnknown(kind: string, action: string): string {
  return `no message for ${
    [kind || "an event without a kind", action].filter(Boolean).join(" ").slice(0, 100)
  }`;
}

function readAccount(payload: Payload): Account {
  const name = payload.text("login");
  return { id: payload.id("id"), name, isBot: isBot(payload, name) };
}

// Gitea gives its own bots negative numbers.
function isBot(payload: Payload, name: string): boolean {
  return payload.text("type") === "Bot" || name.endsWith("[bot]") || payload.id("id").startsWith("-");
}

function readPlace(payload: Payload, thing: string): string {
  return `${payload.text("repository.full_name")}#${payload.id(`${thing}.number`)}`;
}

// The association belongs to the author of the text, who may be another account than the one that acted.
function readAuthor(
  payload: Payload,
  text: string,
): { author: Account; association: string; wrote: boolean } {
  const author = readAccount(payload.at("sender"));
  const wrote = author.id !== "" && payload.id(`${text}.user.id`) === author.id;
  return { author, wrote, association: wrote ? payload.text(`${text}.author_association`) : "" };
}

function readQuote(payload: Payload, thing: string) {
  return {
    author: payload.text(`${thing}.user.login`),
    text: joinTitle(payload.text(`${thing}.title`), payload.text(`${thing}.body`)),
  };
}

export function readOpened(payload: Payload): Reading {
  const { author, association, wrote } = readAuthor(payload, "issue");
  const quote = readQuote(payload, "issue");
  return {
    ...{ kind: "issue", author, association, conversation: readPlace(payload, "issue") },
    headline: addAddress(`opened issue ${readPlace(payload, "issue")}`, payload.text("issue.html_url")),
    text: wrote ? quote.text : "",
    quotes: wrote ? [] : listQuotes(quote),
    change: null,
  };
}

export function readLabeled(payload: Payload, label: string): Reading {
  const { author, association } = readAuthor(payload, "issue");
  return {
    ...{ kind: "issue", author, association, conversation: readPlace(payload, "issue") },
    headline: addAddress(
      `put the label ${JSON.stringify(label)} on ${readPlace(payload, "issue")}`,
      payload.text("issue.html_url"),
    ),
    text: "",
    quotes: listQuotes(readQuote(payload, "issue")),
    change: null,
  };
}

export function readComment(payload: Payload): Reading {
  const { author, association, wrote } = readAuthor(payload, "comment");
  if (!wrote) return "another account wrote the comment";
  return {
    ...{ kind: "comment", author, association, conversation: readPlace(payload, "issue") },
    headline: addAddress(`wrote in ${readPlace(payload, "issue")}`, payload.text("comment.html_url")),
    text: payload.text("comment.body"),
    quotes: listQuotes(readQuote(payload, "issue")),
    change: null,
  };
}

/** Reads a review. `state` is a word such as `changes_requested`. */
export function readReview(payload: Payload, state: string, text: string): Reading {
  const { author, association, wrote } = readAuthor(payload, "review");
  // Gitea names only the sender.
  if (payload.has("review.user") && !wrote) return "another account wrote the review";
  const verdict = state.toLowerCase().replaceAll("_", " ");
  // GitHub sends such a review for each single comment on a line.
  if (verdict === "commented" && text.trim() === "") return "the review has no text";
  return {
    ...{ kind: "review", author, association, conversation: readPlace(payload, "pull_request") },
    headline: addAddress(
      `reviewed pull request ${readPlace(payload, "pull_request")} (${verdict})`,
      payload.text("review.html_url") || payload.text("pull_request.html_url"),
    ),
    text,
    quotes: listQuotes(readQuote(payload, "pull_request")),
    change: readChange(payload),
  };
}

function readReviewComment(payload: Payload): Reading {
  const { author, association, wrote } = readAuthor(payload, "comment");
  if (!wrote) return "another account wrote the comment";
  const place = readPlace(payload, "pull_request");
  return {
    ...{ kind: "review", author, association, conversation: place },
    headline: addAddress(
      `wrote about a line of ${JSON.stringify(payload.text("comment.path"))} in ${place}`,
      payload.text("comment.html_url"),
    ),
    text: payload.text("comment.body"),
    quotes: listQuotes({ author: "the change", text: payload.text("comment.diff_hunk") }),
    change: readChange(payload),
  };
}

/** Reads the branch of a pull request. */
function readChange(payload: Payload): ForgeChange {
  const pull = payload.at("pull_request");
  return {
    repository: payload.text("repository.html_url"),
    base: pull.text("base.repo.full_name"),
    // The repository of the branch may be gone.
    head: pull.text("head.repo.full_name") || "?",
    branch: pull.text("head.ref"),
    commit: pull.text("head.sha"),
  };
}

function readCheck(payload: Payload, kind: "check_run" | "workflow_run"): Reading {
  const check = payload.at(kind);
  const conclusion = check.text("conclusion");
  if (!FAILED.includes(conclusion)) return `the check ended as ${conclusion || "nothing"}`;
  const base = payload.text("repository.full_name");
  const branch = check.text("head_branch") || check.text("check_suite.head_branch");
  const [pull] = check.list("pull_requests");
  const number = pull?.id("number") ?? "";
  // A check of a fork has no branch here. Pull requests of a check name their repositories by id only.
  const isFork = kind === "workflow_run"
    ? check.text("head_repository.full_name") !== base
    : branch === "" || pull !== undefined && pull.id("head.repo.id") !== pull.id("base.repo.id");
  const place = number === "" ? `${base}@${branch}` : `${base}#${number}`;
  return {
    ...{
      kind: "check",
      author: readAccount(payload.at("sender")),
      association: "",
      conversation: place,
      text: "",
    },
    headline: addAddress(
      `ran a check of branch ${branch} of ${place}, which failed (${conclusion})`,
      check.text("html_url"),
    ),
    quotes: listQuotes({
      author: "the check",
      text: joinTitle(
        check.text("name"),
        joinTitle(check.text("output.title"), check.text("output.summary")),
      ),
    }),
    change: {
      repository: payload.text("repository.html_url"),
      base,
      head: isFork ? "?" : base,
      branch,
      commit: check.text("head_sha"),
    },
  };
}

/** Reads the status of a commit, which programs outside the forge set. */
function readStatus(payload: Payload): Reading {
  const state = payload.text("state");
  if (!FAILED.includes(state)) return `the status is ${state || "missing"}`;
  const base = payload.text("repository.full_name");
  const commit = payload.text("sha");
  const branch = payload.list("branches").map((one) => one.text("name"))[0] ?? "";
  // A branch of this repository has the commit, otherwise a fork may have it.
  const head = branch === "" ? "?" : base;
  return {
    ...{ kind: "check", author: readAccount(payload.at("sender")), association: "", text: "" },
    conversation: `${base}@${branch || commit}`,
    headline: addAddress(
      `set a failed status (${state}) for commit ${commit} of ${base}`,
      payload.text("target_url"),
    ),
    quotes: listQuotes({
      author: "the check",
      text: joinTitle(payload.text("context"), payload.text("description")),
    }),
    change: { repository: payload.text("repository.html_url"), base, head, branch, commit },
  };
}
