import { Send } from "lucide-preact";
import type { ComponentChildren } from "preact";
import { Link } from "wouter-preact";
import type { PageProps } from "../../live/address.ts";
import { api, load, type Schemas } from "../../live/api.ts";
import { useGet } from "../../live/resource.ts";
import { hasScope } from "../../live/session.ts";
import { findWorkerName } from "../../live/workers.ts";
import { Button } from "../../parts/button.tsx";
import {
  formatActor,
  formatDuration,
  formatPlatform,
  formatTime,
  takeFirstLine,
} from "../../parts/format.ts";
import { Notice } from "../../parts/notice.tsx";
import { DetailPage, Facts } from "../../parts/page.tsx";
import { ShortId } from "../../parts/short_id.tsx";
import { Status } from "../../parts/status.tsx";
import { ExactTime } from "../../parts/time.tsx";
import { formatFailure } from "../work/failure.ts";
import { ConversationLink } from "./conversation_link.tsx";

type Trace = Schemas["MessageTrace"];

const TITLE_MAX_CHARACTERS = 60;

export function Page({ params: { id = "" } }: PageProps) {
  const read = useGet("/api/messages/{id}/trace", { path: { id } }, (event) => event.message_id === id);
  return (
    <DetailPage
      read={read}
      above={{ href: "/console/messages", name: "Messages" }}
      title={({ message }) => takeFirstLine(message.content, TITLE_MAX_CHARACTERS) || "Message"}
    >
      {(trace) => (
        <>
          <MessageFacts message={trace.message} />
          {trace.message.error !== "" && <Notice tone="bad">{trace.message.error}</Notice>}
          <Timeline trace={trace} reload={read.reload} />
        </>
      )}
    </DetailPage>
  );
}

function MessageFacts({ message }: { message: Trace["message"] }) {
  return (
    <Facts
      values={{
        "Status": <Status value={message.status} />,
        "Platform": formatPlatform(message.platform),
        "Sender": message.sender_name || formatActor(message.sender),
        "Received": <ExactTime at={message.received_at} />,
        "Conversation": <ConversationLink sessionKey={message.session_key} />,
        "ID": <ShortId value={message.id} subject="message id" />,
      }}
    />
  );
}

function Timeline({ trace, reload }: { trace: Trace; reload: () => void }) {
  const steps = listSteps(trace);
  const start = steps[0]?.at ?? trace.message.received_at;
  return (
    <ol class="timeline">
      {steps.map(({ at, status, title, text, undelivered }, index) => (
        <li key={index}>
          <Status value={status} bare />
          <div>
            <p class="timeline-head">
              <span>{title}</span>
              <time dateTime={new Date(at).toISOString()} title={formatTime(at)} class="quiet number">
                {index === 0 ? formatTime(at) : `+${formatDuration(at - start)}`}
              </time>
            </p>
            {text !== "" && <p class="prose brief">{text}</p>}
            {undelivered !== undefined && hasScope("write:messages") && (
              <p>
                <Button
                  icon={Send}
                  press={() =>
                    load(api.POST("/api/messages/{id}/resend", { params: { path: { id: undelivered } } }))}
                  done="Sending again"
                  after={reload}
                >
                  Send again
                </Button>
              </p>
            )}
          </div>
        </li>
      ))}
    </ol>
  );
}

interface Step {
  at: number;
  status: string;
  title: ComponentChildren;
  text: string;
  /** The id of a reply that can be sent again. */
  undelivered?: string;
}

function listSteps({ parts, routing, tasks, executions, replies }: Trace): Step[] {
  const steps: Step[] = [
    ...parts.map(({ received_at, content }) => ({
      ...{ at: received_at, status: "sent", title: "Received", text: content },
    })),
    ...routing.map((run) => ({
      at: run.completed_at ?? run.created_at,
      status: run.status,
      title: run.engine === "rules" ? "Routed by rules" : `Routed by the coordinator on ${run.engine}`,
      text: run.error || run.reason,
    })),
    ...tasks.map((task) => ({
      at: task.created_at,
      status: task.status,
      title: (
        <Link href={`/console/tasks/${task.id}`}>
          Task for {findWorkerName(task.worker_id) || "a worker"}
        </Link>
      ),
      text: task.reason || takeFirstLine(task.instruction),
    })),
    ...executions.map((one) => ({
      at: one.started_at ?? one.created_at,
      status: one.status,
      title: <Link href={`/console/executions/${one.id}`}>Run of {one.worker_name}</Link>,
      text: one.status === "failed" ? `The run ${formatFailure(one.failure)}. ${one.error}` : "",
    })),
    ...replies.map((reply) => ({
      at: reply.sent_at ?? reply.created_at,
      status: reply.status === "failed" ? "undelivered" : "sent",
      title: formatReplyTitle(reply),
      text: reply.error === "" ? reply.content : `${reply.content}\n(${reply.error})`,
      ...(reply.status === "failed" && reply.next_attempt_at === null ? { undelivered: reply.id } : {}),
    })),
  ];
  return steps.sort((a, b) => a.at - b.at);
}

function formatReplyTitle({ source_type, source_id, question_id }: Trace["replies"][number]): string {
  if (source_type === "worker") return `${findWorkerName(source_id) || "A worker"} replied`;
  return question_id === "" ? "The service replied" : "Question sent";
}
