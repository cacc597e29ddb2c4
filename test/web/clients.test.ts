/** An approval on the page, on the command line and in an editor at once: who decides it closes it for all. */
import { expect, onTestFinished, vi } from "vitest";
import { say, text, toolCall } from "../../local/scripted/script.ts";
import { openEditor } from "../acp/editor.ts";
import { bedrock } from "../cli/support.ts";
import { Conversations, on } from "./conversations.ts";
import { testWithStack } from "./stack.ts";

const test = testWithStack();

test.for(["page", "command line", "editor"] as const)(
  "an approval that is given by the %s closes in the others",
  async (by, { visitor, stack }) => {
    const conversations = new Conversations(stack);
    const asks = say(text("I ask."), toolCall("request_mode_upgrade", { reason: "To write." }));
    const { id, url } = await conversations.start("Go.", asks, say(text("Thanks.")));
    const page = await visitor.open(url);
    const at = on(page);
    await at.allow.waitFor();
    const terminal = bedrock(["attach", id], { url: stack.url, isTerminal: true });
    await terminal.shows("Allow it? [y/N]");
    const editor = await openEditor({ BEDROCK_URL: stack.url });
    onTestFinished(editor.kill);
    await editor.agent.request("session/load", {
      sessionId: id,
      cwd: stack.system.cwd,
      mcpServers: [],
    });
    await vi.waitFor(() => expect(editor.questions).toHaveLength(1), 10_000);
    // A press counts only when the question has been there for a while.
    await page.waitForTimeout(800);

    switch (by) {
      case "page":
        await at.allow.click();
        break;
      case "command line":
        terminal.type("y\r");
        break;
      case "editor":
        editor.questions[0]?.answer("approve");
    }
    await at.allow.waitFor({ state: "detached" });
    await at.transcript.getByText("Thanks.").waitFor();
    const { code, stdout } = await terminal.ended;
    expect(code).toBe(0);
    expect(stdout.includes("Decided elsewhere.")).toBe(by !== "command line");
    await vi.waitFor(() => expect(editor.said()).toContain("Thanks."), 10_000);
    expect(editor.questions).toHaveLength(1);
    expect(editor.questions[0]?.isTakenBack()).toBe(by !== "editor");
    expect((await conversations.person.conversation(id))["mode"]).toBe("unrestricted");
  },
);
