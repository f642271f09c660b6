import type { ForgeChange } from "../../domain/work/forge_branch.ts";
import { type Account, addAddress, joinTitle, listQuotes, type Reading } from "./event.ts";
import { formatUnknown } from "./github.ts";
import { Payload } from "./payload.ts";

/** Reads a delivery of GitLab. */
export function readGitLab(body: unknown): Reading {
  const payload = new Payload(body);
  const kind = payload.text("object_kind");
  switch (kind) {
    case "issue":
      return readIssue(payload);
    case "note":
      return readNote(payload);
    case "merge_request":
      return readApproval(payload);
    case "pipeline":
      return readPipeline(payload);
    default:
      return formatUnknown(kind, payload.text("object_attributes.action"));
  }
}

// The names of bots of access tokens: project_12_bot, project_12_bot_4ffca233d8298ea1.
const BOT = /^(?:project|group)_\d+_bot(?:_|$)|^(?:support|alert|security)-bot$/;

function readUser(payload: Payload): Account {
  const name = payload.text("user.username");
  return { id: payload.id("user.id"), name, isBot: BOT.test(name) };
}

function readProject(payload: Payload): string {
  return payload.text("project.path_with_namespace");
}

function readIssue(payload: Payload): Reading {
  const author = readUser(payload);
  const issue = payload.at("object_attributes");
  const place = `${readProject(payload)}#${issue.id("iid")}`;
  const action = issue.text("action");
  const wrote = author.id !== "" && issue.id("author_id") === author.id;
  const words = joinTitle(issue.text("title"), issue.text("description"));
  const common = { kind: "issue", author, association: "", conversation: place, change: null } as const;
  if (action === "open") {
    return {
      ...common,
      headline: addAddress(`opened issue ${place}`, issue.text("url")),
      text: wrote ? words : "",
      quotes: wrote ? [] : listQuotes({ author: "the author of the issue", text: words }),
    };
  }
  const before = payload.list("changes.labels.previous").map((label) => label.id("id"));
  const added = payload.list("changes.labels.current").filter((label) => !before.includes(label.id("id")));
  if (action !== "update" || added.length === 0) return formatUnknown("issue", action);
  const labels = added.map((label) => JSON.stringify(label.text("title"))).join(", ");
  return {
    ...common,
    headline: addAddress(`put the label ${labels} on ${place}`, issue.text("url")),
    text: "",
    quotes: listQuotes({ author: "the author of the issue", text: words }),
  };
}

function readNote(payload: Payload): Reading {
  const note = payload.at("object_attributes");
  const author = readUser(payload);
  const type = note.text("noteable_type");
  const thing = type === "Issue" ? "issue" : type === "MergeRequest" ? "merge_request" : "";
  if (thing === "" || note.is("system")) return formatUnknown("note", type);
  // Before 16.11, an edited note has no action but another time.
  const action = note.text("action") ||
    (note.text("created_at") === note.text("updated_at") ? "create" : "update");
  if (action !== "create") return formatUnknown("note", action);
  if (author.id === "" || note.id("author_id") !== author.id) return "another account wrote the note";
  const isReview = note.text("type") === "DiffNote";
  const place = `${readProject(payload)}${thing === "issue" ? "#" : "!"}${payload.id(`${thing}.iid`)}`;
  const path = JSON.stringify(note.text("position.new_path"));
  return {
    ...{ kind: isReview ? "review" : "comment", author, association: "", conversation: place },
    headline: addAddress(`wrote ${isReview ? `about a line of ${path} ` : ""}in ${place}`, note.text("url")),
    text: note.text("note"),
    quotes: listQuotes({
      author: thing === "issue" ? "the author of the issue" : "the author of the merge request",
      text: joinTitle(payload.text(`${thing}.title`), payload.text(`${thing}.description`)),
    }),
    change: thing === "issue" ? null : readChange(payload, payload.at("merge_request")),
  };
}

function readChange(payload: Payload, merge: Payload): ForgeChange {
  return {
    repository: payload.text("project.web_url"),
    base: merge.text("target.path_with_namespace"),
    head: merge.text("source.path_with_namespace") || "?",
    branch: merge.text("source_branch"),
    commit: merge.text("last_commit.id"),
  };
}

function readApproval(payload: Payload): Reading {
  const merge = payload.at("object_attributes");
  const action = merge.text("action");
  // `approval` is of one user, `approved` says that all have approved.
  const verdict = { approval: "approved", unapproval: "approval withdrawn" }[action];
  if (verdict === undefined) return formatUnknown("merge_request", action);
  const place = `${readProject(payload)}!${merge.id("iid")}`;
  return {
    ...{ kind: "review", author: readUser(payload), association: "", conversation: place, text: "" },
    headline: addAddress(`reviewed merge request ${place} (${verdict})`, merge.text("url")),
    quotes: listQuotes({ author: "the author of the merge request", text: merge.text("title") }),
    change: readChange(payload, merge),
  };
}

function readPipeline(payload: Payload): Reading {
  const pipeline = payload.at("object_attributes");
  const status = pipeline.text("status");
  if (status !== "failed") return `the pipeline is ${status || "without a status"}`;
  const base = readProject(payload);
  const merge = payload.at("merge_request");
  const number = merge.id("iid");
  const branch = merge.text("source_branch") || pipeline.text("ref");
  // Of a merge request, the payload has the ids of both projects.
  const isFork = number !== "" && merge.id("source_project_id") !== merge.id("target_project_id");
  const place = number === "" ? `${base}@${branch}` : `${base}!${number}`;
  const failed = payload.list("builds").filter((build) => build.text("status") === "failed")
    .map((build) =>
      [build.text("stage"), build.text("name"), build.text("failure_reason")].filter(Boolean).join(", ")
    );
  return {
    ...{ kind: "check", author: readUser(payload), association: "", conversation: place, text: "" },
    headline: addAddress(
      `ran a pipeline of branch ${branch} of ${place}, which failed`,
      pipeline.text("url"),
    ),
    quotes: listQuotes({ author: "the pipeline", text: failed.map((job) => `failed: ${job}`).join("\n") }),
    change: {
      repository: payload.text("project.web_url"),
      base,
      head: isFork ? "?" : base,
      branch,
      commit: pipeline.text("sha"),
    },
  };
}
