"""The chat and compaction services as a game calls them, in few words."""

from __future__ import annotations

from client import Client

from sidecar.gen.lorekeeper.v1 import chat_pb2, chat_pb2_grpc, compaction_pb2, compaction_pb2_grpc, role_pb2

PREFIX = chat_pb2.PROMPT_SECTION_KIND_PREFIX
SUMMARY = chat_pb2.PROMPT_SECTION_KIND_SUMMARY
HISTORY = chat_pb2.PROMPT_SECTION_KIND_HISTORY


class Chat:
    """What a test does with one daemon's conversations."""

    def __init__(self, client: Client) -> None:
        self.stub = chat_pb2_grpc.ChatServiceStub(client.channel)
        self.compaction = compaction_pb2_grpc.CompactionServiceStub(client.channel)

    def append(self, actor, *messages, **more):
        """``messages`` are pairs of role and content."""
        sent = [chat_pb2.NewMessage(role=role, content=content) for role, content in messages]
        return self.stub.AppendMessages(chat_pb2.AppendMessagesRequest(actor=actor, messages=sent, **more))

    def talk(self, actor, count, *, first=0, text="line {}", **more):
        """``count`` messages of a player and an NPC in turn, in one call."""
        roles = ("user", "assistant")
        return self.append(actor, *((roles[n % 2], text.format(n)) for n in range(first, first + count)), **more)

    def messages(self, actor, **more):
        return list(self.stub.ListMessages(chat_pb2.ListMessagesRequest(actor=actor, **more)).messages)

    def texts(self, actor):
        return [message.content for message in self.messages(actor)]

    def entries(self, actor, **more):
        return list(self.stub.ListTranscript(chat_pb2.ListTranscriptRequest(actor=actor, **more)).entries)

    def record(self, actor, *entries, **more):
        return self.stub.AppendTranscript(chat_pb2.AppendTranscriptRequest(actor=actor, entries=entries, **more))

    def clear(self, actor, **more):
        return self.stub.ClearHistory(chat_pb2.ClearHistoryRequest(actor=actor, **more))

    def put_role(self, role_id, **fields):
        return self.stub.PutRole(chat_pb2.PutRoleRequest(role=role_pb2.Role(role_id=role_id, **fields))).role

    def role(self, role_id):
        return self.stub.GetRole(chat_pb2.GetRoleRequest(role_id=role_id)).role

    def prompt(self, actor, text="", *, tools=(), include_wire_json=False, **fields):
        turn = chat_pb2.TurnInput(text=text, **fields)
        request = chat_pb2.BuildPromptRequest(actor=actor, input=turn, tools=tools, include_wire_json=include_wire_json)
        return self.stub.BuildPrompt(request)

    def compact(self, actor, **more):
        return self.compaction.Compact(compaction_pb2.CompactRequest(actor=actor, **more))

    def preview(self, actor, **more):
        return self.compaction.PreviewWindow(compaction_pb2.PreviewWindowRequest(actor=actor, **more))

    def summary(self, actor):
        return self.compaction.GetSummary(compaction_pb2.GetSummaryRequest(actor=actor)).summary

    def put_summary(self, actor, text, **more):
        return self.compaction.PutSummary(compaction_pb2.PutSummaryRequest(actor=actor, text=text, **more))

    def clear_summary(self, actor, **more):
        return self.compaction.ClearSummary(compaction_pb2.ClearSummaryRequest(actor=actor, **more))

    def count(self, *texts, **more):
        return self.compaction.CountTokens(compaction_pb2.CountTokensRequest(texts=texts, **more))


def parts(prompt, section):
    """The contents of the prompt's messages that belong to one section."""
    return [message.content for message in prompt.messages if message.section == section]


def cut(answer, what):
    """The cut of that name in an answer, or None."""
    return next((cut for cut in answer.cuts if cut.what == what), None)
