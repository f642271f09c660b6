import { unzip } from "./zip.ts";
import { dropConnection, FakeServer, type Json } from "./server.ts";

const CLIENT_ID = "dingclient";
const SECRET = "secret-of-dingtalk";
const TEMPLATE = "tpl.schema";
const FILE_TYPES = ["xlsx", "pdf", "zip", "rar", "doc", "docx"];
const TEXT_CHARACTERS = 3_800;
/** All fields of an answer to a frame. */
const ANSWER_KEYS = "code,data,headers,message";

/** A strict fake of DingTalk's interfaces and stream. */
export class FakeDingTalk extends FakeServer<"lost" | { status: number; code: string }> {
  readonly clientId = CLIENT_ID;
  readonly secret = SECRET;
  readonly template = TEMPLATE;
  /** People who left. DingTalk answers their messages with a success. */
  readonly gone = new Set<string>();
  /** All emotions ever added, as `<conversation> <message>`, and the current ones. */
  readonly emotions: string[] = [];
  readonly emotionsNow = new Set<string>();
  /** Host of the downloads. "": this server. */
  fileHost = "";
  isPlain = false;
  tokens = 0;
  #token = "";
  #answered = new Set<string>();
  #stored = new Map<string, { name: string; bytes: Uint8Array }>();

  /** Makes the token expire at the next message of the bot. */
  expiresNext = false;
  /** Answer to an expired token. */
  staleAs: [status: number, code: string] = [401, "InvalidAuthentication"];

  override expire(): void {
    this.#token = "";
  }

  /** Sends a message to the robot, and again over the next stream until the acknowledgement. */
  message(data: Json): void {
    this.#callback("/v1.0/im/bot/messages/get", { robotCode: CLIENT_ID, chatbotUserId: "bot", ...data });
  }

  /** Presses a button of a card. */
  press(outTrackId: string, userId: string, number: number): void {
    const { params } = this.sent.find((one) => one.id === outTrackId);
    const given = {
      actionIds: [`b${number}`],
      params: { value: params.old?.[`v${number}`] ?? params[`v${number}`] },
    };
    const content = JSON.stringify({ cardPrivateData: given });
    this.#callback("/v1.0/card/instances/callback", {
      outTrackId,
      userId,
      userIdType: 1,
      type: "actionCallback",
      content,
    });
  }

  system(topic: "ping" | "disconnect"): void {
    for (const socket of this.sockets) {
      this.transmit(socket, this.createId("s"), { type: "SYSTEM", topic, data: `{"opaque":"o"}` });
    }
  }

  /** Sends an event that is no message. */
  event(): void {
    this.announce(this.createId("m"), { type: "EVENT", topic: "*", data: "{}" });
  }

  #callback(topic: string, data: Json): void {
    this.announce(this.createId("m"), { type: "CALLBACK", topic, data: JSON.stringify(data) });
  }

  protected override transmit(socket: WebSocket, messageId: string, { type, topic, data }: Json): void {
    const headers = { topic, messageId, contentType: "application/json", time: "1" };
    socket.send(JSON.stringify({ specVersion: "1.0", type, headers, data }));
  }

  protected async answer(request: Request): Promise<Response> {
    const { pathname, searchParams } = new URL(request.url);
    if (pathname === "/stream") return this.#upgrade(request, searchParams.get("ticket"));
    if (pathname.startsWith("/files/")) return this.#file(pathname.slice(7), request);
    if (pathname === "/media/upload") return await this.#upload(searchParams, await request.formData());
    if (!/^application\/json/.test(request.headers.get("content-type") ?? "")) {
      this.faults.push("content type");
    }
    const body = await request.json();
    if (pathname === "/v1.0/gateway/connections/open") return this.#open(body, request);
    if (pathname === "/v1.0/oauth2/accessToken") return this.#authorize(body);
    if (request.headers.get("x-acs-dingtalk-access-token") !== this.#token || this.#token === "") {
      return no(...this.staleAs, "不合法的access_token");
    }
    return this.#call(`${request.method} ${pathname}`, body);
  }

  #open({ clientId, clientSecret, subscriptions }: Json, request: Request): Response {
    if (request.headers.get("accept") !== "application/json") return new Response("<xml/>");
    if (clientId !== CLIENT_ID || clientSecret !== SECRET || this.revoked) {
      return no(401, "authFailed", "鉴权失败");
    }
    const topics = subscriptions.filter(({ type }: Json) => type === "CALLBACK").map(({ topic }: Json) =>
      topic
    );
    if (topics.length !== 2) this.faults.push(`topics ${topics}`);
    return Response.json({ endpoint: `${this.socketUrl}/stream`, ticket: this.createTicket() });
  }

  #authorize({ appKey, appSecret }: Json): Response {
    if (appKey !== CLIENT_ID || appSecret !== SECRET || this.revoked) {
      return no(400, "invalidClientIdOrSecret", "无效的clientId或者clientSecret");
    }
    this.#token ||= this.createId("a");
    this.tokens++;
    return Response.json({ accessToken: this.#token, expireIn: 7200 });
  }

  #call(route: string, body: Json): Response {
    if (body.robotCode !== undefined && body.robotCode !== CLIENT_ID) {
      return no(400, "invalidParameter.robotCode", "robot");
    }
    switch (route) {
      case "POST /v1.0/robot/oToMessages/batchSend":
        return this.#message(body.userIds, body, "userIds");
      case "POST /v1.0/robot/groupMessages/send":
        return this.#message([body.openConversationId], body, "openConversationId");
      case "POST /v1.0/robot/otoMessages/batchRecall":
      case "POST /v1.0/robot/groupMessages/recall":
        return this.#recall(body, route.includes("group"));
      case "POST /v1.0/card/instances/createAndDeliver":
        return this.#card(body);
      case "PUT /v1.0/card/instances":
        return this.#change(body);
      case "POST /v1.0/robot/emotion/reply":
      case "POST /v1.0/robot/emotion/recall":
        return this.#emotion(body, route.endsWith("recall"));
      case "POST /v1.0/robot/messageFiles/download":
        return this.#code(body.downloadCode);
    }
    this.faults.push(`call ${route}`);
    return no(404, "InvalidAction.NotFound", "Specified api is not found");
  }

  #message(to: Json, { robotCode: _code, msgKey, msgParam, ...more }: Json, place: string): Response {
    if (Object.keys(more).join() !== place) return no(400, "invalidParameter", `${Object.keys(more)}`);
    const [chat, ...others] = to;
    if (typeof chat !== "string" || others.length > 0) return no(400, "invalidParameter", "one chat");
    const isPerson = place === "userIds";
    if (isPerson === chat.startsWith("cid")) return no(400, "invalidParameter", "the wrong kind of chat");
    if (this.limited.has(chat)) {
      return isPerson
        ? Response.json({ processQueryKey: "", flowControlledStaffIdList: [chat], invalidStaffIdList: [] })
        : no(403, "Forbidden.AccessDenied.QpsLimitForAppkeyAndApi", "too much");
    }
    if (this.gone.has(chat)) {
      return Response.json({
        processQueryKey: "",
        flowControlledStaffIdList: [],
        invalidStaffIdList: [chat],
      });
    }
    const mode = this.modes.shift();
    if (typeof mode === "object") return no(mode.status, mode.code, "refused");
    const said = this.#said(msgKey, JSON.parse(msgParam));
    if (said instanceof Response) return said;
    const id = this.createId("q");
    this.sent.push({ id, chat, deleted: false, params: {}, ...said });
    if (this.expiresNext) this.expire();
    this.expiresNext = false;
    if (mode === "lost") return dropConnection();
    return Response.json({
      processQueryKey: id,
      ...(isPerson ? { invalidStaffIdList: [], flowControlledStaffIdList: [] } : {}),
    });
  }

  #said(key: string, param: Json): Json {
    if (key === "sampleMarkdown") {
      const { title, text } = param;
      const isWell = typeof title === "string" && title !== "" && text !== "" &&
        text.length <= TEXT_CHARACTERS;
      return isWell ? { text } : no(400, "invalidParameter.msgParam", "markdown");
    }
    if (key !== "sampleFile") return no(400, "invalidParameter.msgKey", key);
    const { mediaId, fileName, fileType } = param;
    const file = this.#stored.get(mediaId);
    if (file === undefined || !FILE_TYPES.includes(fileType) || !fileName.endsWith(`.${fileType}`)) {
      return no(400, "invalidParameter.msgParam", "file");
    }
    const { name, text } = fileType === "zip" ? unzip(file.bytes) : { name: fileName, text: "" };
    this.uploads.push({ name, text });
    return { text: `[file ${name}]` };
  }

  #recall({ robotCode: _code, processQueryKeys: [key], ...more }: Json, isGroup: boolean): Response {
    const message = this.sent.find((one) => one.id === key || one.carrier === key);
    if (isGroup !== ("openConversationId" in more)) return no(400, "invalidParameter", "place");
    if (message === undefined || message.deleted) {
      return no(400, "invalidParameter.processQueryKeys", "no message");
    }
    message.deleted = true;
    return Response.json({ successResult: [key], failedResult: {} });
  }

  #card(body: Json): Response {
    const { cardTemplateId, outTrackId, callbackType, cardData, openSpaceId, ...more } = body;
    const [, space, chat] = /^dtv1\.card\/\/(IM_GROUP|IM_ROBOT)\.(.+)$/.exec(openSpaceId) ?? [];
    const model = space === "IM_GROUP" ? more.imGroupOpenDeliverModel : more.imRobotOpenDeliverModel;
    if (model?.robotCode !== CLIENT_ID || (space === "IM_GROUP") !== chat?.startsWith("cid")) {
      return no(400, "invalidParameter", "space");
    }
    if (cardTemplateId !== TEMPLATE || callbackType !== "STREAM") {
      return no(400, "param.templateNotExist", "template");
    }
    const params = cardData.cardParamMap;
    if (Object.values(params).some((value) => typeof value !== "string")) {
      return no(400, "invalidParameter", "strings");
    }
    if (this.sent.some(({ id }) => id === outTrackId)) return no(400, "param.outTrackIdExist", "twice");
    const carrier = this.createId("c");
    this.sent.push({
      id: outTrackId,
      carrier,
      chat,
      text: params.text,
      params,
      deleted: false,
      isCard: true,
      edits: 0,
    });
    const deliverResults = [{ spaceId: chat, spaceType: space, success: true, carrierId: carrier }];
    return Response.json({ success: true, result: { outTrackId, deliverResults } });
  }

  #change({ outTrackId, cardData, cardUpdateOptions }: Json): Response {
    const card = this.sent.find(({ id }) => id === outTrackId);
    if (card === undefined) return no(400, "param.cardNotExist", "no card");
    if (cardUpdateOptions?.updateCardDataByKey !== true) return no(400, "invalidParameter", "all of it");
    const { old = card.params, ...params } = card.params;
    card.params = { ...params, ...cardData.cardParamMap, old };
    card.edits++;
    card.text = [card.params.text, card.params.answer].filter((one) => one !== "").join("\n\n");
    return Response.json({ success: true, result: true });
  }

  #emotion({ openMsgId, openConversationId, emotionType, textEmotion }: Json, isRecall: boolean): Response {
    if (this.isPlain) return no(403, "Forbidden.AccessDenied.AccessTokenPermissionDenied", "no permission");
    if (emotionType !== 2 || textEmotion?.emotionId !== "2659900") {
      return no(400, "invalidParameter", "emotion");
    }
    const key = `${openConversationId} ${openMsgId}`;
    if (isRecall) this.emotionsNow.delete(key);
    else {
      this.emotions.push(key);
      this.emotionsNow.add(key);
    }
    return Response.json({ success: true });
  }

  async #upload(query: URLSearchParams, form: FormData): Promise<Response> {
    if (query.get("access_token") !== this.#token) {
      return Response.json({ errcode: 40014, errmsg: "不合法的access_token" });
    }
    const file = form.get("media");
    if (!(file instanceof File) || query.get("type") !== "file") {
      return Response.json({ errcode: 40035, errmsg: "参数" });
    }
    const media_id = this.createId("@f");
    this.#stored.set(media_id, { name: file.name, bytes: new Uint8Array(await file.arrayBuffer()) });
    return Response.json({ errcode: 0, errmsg: "ok", media_id, type: "file" });
  }

  #code(downloadCode: string): Response {
    if (!this.files.has(downloadCode)) return no(400, "invalidParameter.downloadCode", "no such file");
    return Response.json({ downloadUrl: `${this.fileHost || this.url}/files/${downloadCode}` });
  }

  #file(code: string, request: Request): Response {
    if (request.headers.has("x-acs-dingtalk-access-token")) this.faults.push("a token for a file");
    return this.download(code);
  }

  #upgrade(request: Request, ticket: string | null): Response {
    if (!this.useTicket(ticket)) return new Response("used", { status: 401 });
    return this.accept(request, { take: (data) => this.#acknowledged(JSON.parse(data)) });
  }

  #acknowledged(answer: Json): void {
    const { messageId, contentType } = answer.headers;
    if (
      Object.keys(answer).sort().join() !== ANSWER_KEYS || answer.code !== 200 ||
      contentType !== "application/json"
    ) {
      this.faults.push("an answer to a frame");
    }
    const frame = this.waiting.get(messageId);
    if (frame === undefined) {
      // The service answers a repeated frame on both streams.
      if (this.#answered.has(messageId)) return;
      // The answer to a ping has the data of the ping.
      if (answer.data !== `{"opaque":"o"}`) this.faults.push("an answer to nothing");
      return;
    }
    this.waiting.delete(messageId);
    this.#answered.add(messageId);
    const given = JSON.parse(answer.data);
    if (frame.type === "EVENT" ? given.status !== "SUCCESS" : given.response === undefined) {
      this.faults.push("an answer");
    }
    if (frame.topic !== "/v1.0/card/instances/callback" || given.response.cardData === undefined) return;
    const { outTrackId } = JSON.parse(frame.data);
    if (this.#change({ outTrackId, ...given.response }).status !== 200) {
      this.faults.push("a card after a press");
    }
  }
}

function no(status: number, code: string, message: string): Response {
  return Response.json({ code, requestid: "r", message }, { status });
}
