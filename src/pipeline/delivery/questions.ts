// Question: open -> answered by its default, or expired.
import { createId } from "../../base/id.ts";
import { WAKEUP } from "../../base/wakeups.ts";
import { BY_DEFAULT } from "../../domain/call/vocabulary.ts";
import { type DueQuestion, findNextExpiry, listDueQuestions } from "../../store/work/question.ts";
import { answerQuestion, expireQuestion } from "../../store/work/question_transitions.ts";
import { Stage, type StageServices } from "../stage/stage.ts";

const QUESTIONS_PER_ROUND = 200;

/** Creates the stage that ends overdue questions: with their default answer, or as expired (contract 12). */
export function createQuestionStage(services: StageServices): Stage {
  const { db, clock } = services;
  return new Stage(services, { name: "question", wakeup: WAKEUP.question, step });

  async function step(): Promise<number> {
    const now = clock.now();
    const due = await listDueQuestions(db, now, QUESTIONS_PER_ROUND);
    // A lost guard means that an answer came first.
    for (const question of due) await db.write(buildEnd(question, now));
    if (due.length === QUESTIONS_PER_ROUND) return 0;
    const next = await findNextExpiry(db);
    return next === null ? Infinity : Math.max(0, next - clock.now());
  }
}

function buildEnd(question: DueQuestion, now: number) {
  if (question.default === "") return expireQuestion(question, now);
  const given = { answer: question.default, by: BY_DEFAULT, messageId: "", taskId: createId() };
  return answerQuestion(question, given, now);
}
