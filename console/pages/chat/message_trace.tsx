import { Send } from "lucide-preact";
import type { ComponentChildren } from "preact";
import { Link } from "wouter-preact";
import { api, ask, type Schemas } from "../../live/api.ts";
import { useResource } from "../../live/resource.ts";
import { may } from "../../live/session.ts";
import { workerName } from "../../live/workers.ts";
import type { PageProps } from "../../pages.tsx";
import { Act } from "../../parts/button.tsx";
import { Fact, Facts } from "../../parts/facts.tsx";
import { durationText, firstLine, platformText, timeText, whoText } from "../../parts/format.ts";
import { Absent, Heading } from "../../parts/page.tsx";
import { ShortId } from "../../parts/short_id.tsx";
import { Status } from "../../parts/status.tsx";
import { Ago } from "../../parts/time.tsx";
import { attempt } from "../../parts/toast.tsx";
import { ConversationLink } from "./conversation_link.tsx";
import { failureWord } from "../work/failure.ts";

const ABOVE = { href: "/console/messages", name: "Messages" };

type Trace = Schemas["MessageTrace"];

const TITLE_MAX_CHARACTERS = 60;

interface Step {
  at: number;
  status: string;
  title: ComponentChildren;
  text: string;
  /** The reply that was given up, and can be sent again. */
  resend?: string;
}

/** The life of one message: what came, who it went to and why, what was run and said, with times (contract 17). */
export function TracePage({ params: { id = "" } }: PageProps) {
  const read = useResource(
    id,
    (signal) => ask(api.GET("/api/messages/{id}/trace", { params: { path: { id } }, signal })),
    (event) => event.message_id === id,
  );
  const trace = read.data;
  if (trace === undefined) return <Absent refusal={read.refusal} above={ABOVE} />;
  const { message } = trace;
  const steps = stepsOf(trace);
  const start = steps[0]?.at ?? message.received_at;
  return (
    <>
      <Heading
        title={firstLine(message.content, TITLE_MAX_CHARACTERS) || "Message"}
        above={ABOVE}
      />
      <div class="scrolled">
        <Facts>
          <Fact name="Status">
            <Status of={message.status} />
          </Fact>
          <Fact name="Platform">{platformText(message.platform)}</Fact>
          <Fact name="From">{message.sender_name || whoText(message.sender)}</Fact>
          <Fact name="Received">
            <Ago at={message.received_at} />
          </Fact>
          <Fact name="Conversation">
            <ConversationLink sessionKey={message.session_key} />
          </Fact>
          <Fact name="Id">
            <ShortId value={message.id} what="message id" />
          </Fact>
        </Facts>
        {message.error !== "" && (
          <div class="notice bad">
            <p>{message.error}</p>
          </div>
        )}
        <ol class="timeline">
          {steps.map((step, index) => (
            <li key={index}>
              <Status of={step.status} bare />
              <div>
                <p class="timeline-head">
                  <span>{step.title}</span>
                  <time
                    dateTime={new Date(step.at).toISOString()}
                    title={timeText(step.at)}
                    class="quiet number"
                  >
                    {index === 0 ? timeText(step.at) : `+${durationText(step.at - start)}`}
                  </time>
                </p>
                {step.text !== "" && <p class="prose brief">{step.text}</p>}
                {step.resend !== undefined && may("write:messages") && (
                  <ResendButton id={step.resend} reload={read.reload} />
                )}
              </div>
            </li>
          ))}
        </ol>
      </div>
    </>
  );
}

/** Sends a reply again whose delivery was given up (contract 10.3). */
function ResendButton({ id, reload }: { id: string; reload: () => void }) {
  async function resend(): Promise<void> {
    const call = () => ask(api.POST("/api/messages/{id}/resend", { params: { path: { id } } }));
    await attempt(call, "It is sent again");
    reload();
  }
  return (
    <p>
      <Act run={resend}>
        <Send size={16} aria-hidden="true" /> Send again
      </Act>
    </p>
  );
}

function stepsOf({ parts, routing, tasks, executions, replies }: Trace): Step[] {
  const steps: Step[] = [
    ...parts.map((part) => ({
      at: part.received_at,
      status: "sent",
      title: "Received",
      text: part.content,
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
        <Link href={`/console/tasks/${task.id}`}>Task for {workerName(task.worker_id) || "a worker"}</Link>
      ),
      text: task.reason || firstLine(task.instruction),
    })),
    ...executions.map((one) => ({
      at: one.started_at ?? one.created_at,
      status: one.status,
      title: <Link href={`/console/executions/${one.id}`}>Run of {one.worker_name}</Link>,
      text: one.status === "failed" ? `It ${failureWord(one.failure)}. ${one.error}` : "",
    })),
    ...replies.map((reply) => ({
      at: reply.sent_at ?? reply.created_at,
      status: reply.status === "failed" ? "undelivered" : "sent",
      title: reply.source_type === "worker"
        ? `${workerName(reply.source_id) || "A worker"} replied`
        : reply.question_id === ""
        ? "The service replied"
        : "A question was asked",
      text: reply.error === "" ? reply.content : `${reply.content}\n(${reply.error})`,
      ...(reply.status === "failed" && reply.next_attempt_at === null ? { resend: reply.id } : {}),
    })),
  ];
  return steps.sort((a, b) => a.at - b.at);
}
