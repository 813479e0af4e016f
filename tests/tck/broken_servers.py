"""For each law of the wire at least one server that breaks it, and the expected verdict.

The documentation is generated from this table.
"""

from dataclasses import dataclass

__all__ = ("BROKEN_SERVERS", "BrokenServer")


@dataclass(frozen=True)
class BrokenServer:
    """One law, a server with a flaw, and the expected verdict."""

    law: str
    flaw: str
    """What the server does wrong: "a server that …"."""
    rule: str
    """The rule that the verdict names."""
    words: str
    is_websocket: bool = False

    def __str__(self) -> str:
        return f"{self.law}: {self.flaw}"


def _row(law: str, flaw: str, words: str, rule: str = "") -> BrokenServer:
    number = law.partition("_")[0].removeprefix("wire")
    return BrokenServer(law, flaw, rule or f"N.{number}", words, number == "37")


BROKEN_SERVERS = [
    # -- the connection
    _row("wire1_serves_nothing_before_setup", "serves without SETUP", "a request was served"),
    _row("wire1_requires_setup_first", "serves without SETUP", "nothing came"),
    _row("wire1_requires_setup_first", "closes without an error", "closed without an error"),
    _row("wire1_requires_setup_first", "leaves the connection open", "left open"),
    _row("wire1_requires_setup_on_stream_0", "accepts SETUP on any stream", "nothing came"),
    _row("wire2_rejects_a_truncated_setup", "accepts a truncated SETUP",
         "the first 15 bytes of a SETUP nothing came"),
    _row("wire2_rejects_a_truncated_setup", "crashes on a truncated SETUP",
         "the server accepts no other connection", "N.13"),
    _row("wire2_rejects_another_version", "accepts any version", "SETUP of version 2.0"),
    _row("wire2_rejects_zero_intervals", "accepts intervals of 0", "SETUP with keepalive=0"),
    _row("wire3_rejects_wrong_credentials_and_serves_nothing", "serves a rejected client",
         "a request was served"),
    _row("wire4_grants_or_refuses_to_resume", "promises to resume", "was not resumed"),
    _row("wire4_rejects_an_unknown_session", "does not know RESUME", "not REJECTED_RESUME"),
    _row("wire5_grants_a_lease_or_refuses", "promises leases", "no LEASE has come"),
    _row("wire6_answers_keepalive_with_its_data", "answers with other data", "no answer to"),
    _row("wire6_answers_keepalive_with_its_data", "answers every KEEPALIVE", "without RESPOND"),
    _row("wire7_ignores_a_second_setup", "closes on a second SETUP", "did not continue"),
    _row("wire7_ignores_frames_out_of_context", "closes on frames out of context",
         "after CANCEL on an unknown stream"),
    _row("wire7_ignores_frames_out_of_context", "answers on streams never opened",
         "on a stream that was never opened", "N.19"),
    _row("wire7_ignores_unknown_flags_and_bits", "rejects unknown flags", "was not served"),
    _row("wire8_ignores_frames_marked_ignore", "does not honor IGNORE", "did not continue"),
    _row("wire8_survives_unknown_frames", "answers unknown frames with INVALID_SETUP",
         "not CONNECTION_ERROR"),
    _row("wire9_rejects_metadata_longer_than_its_frame", "accepts metadata longer than its frame",
         "nothing came"),
    _row("wire10_rejects_malformed_frames", "ignores malformed frames", "nothing came"),
    _row("wire10_rejects_a_request_on_stream_0", "serves stream 0", "not CONNECTION_ERROR"),
    _row("wire11_closes_after_connection_error", "stays after CONNECTION_ERROR", "remains open"),
    _row("wire11_closes_with_its_last_stream_after_connection_close", "closes open streams",
         "cut off"),
    _row("wire11_closes_with_its_last_stream_after_connection_close", "never closes",
         "remains open"),
    _row("wire12_sends_well_formed_frames", "sends invalid frames", "neither NEXT nor COMPLETE"),
    # -- the responder
    _row("wire14_sends_no_more_than_the_first_request", "sends one too many",
         "1 were requested in all, 2 came"),
    _row("wire14_sends_one_for_one", "sends one too many", "1 were requested in all, 2 came"),
    _row("wire14_sends_one_for_one", "ignores later requests", "2 were requested in all", "N.15"),
    _row("wire14_sends_no_more_on_a_channel", "sends one too many and requests many on channels",
         "3 were requested in all, 4 came"),
    _row("wire15_completes_without_further_demand", "completes on demand only", "and no end"),
    _row("wire15_completes_without_further_demand", "does not complete", "and no end"),
    _row("wire15_sends_a_long_stream_in_order", "drops an element", "came"),
    _row("wire16_adds_up_requests", "ignores requests while it has demand", "elements came"),
    _row("wire16_accepts_the_largest_requests", "overflows", "elements came, and no end"),
    _row("wire17_rejects_an_initial_request_of_0", "opens a stream for a request of 0",
         "not answered by an error"),
    _row("wire17_sends_nothing_for_a_request_of_0", "sends one for a request of 0",
         "1 were requested in all, 2 came", "N.14"),
    _row("wire18_stops_after_cancel", "ignores CANCEL", "and more come"),
    _row("wire18_sends_nothing_on_a_cancelled_stream", "answers CANCEL", "after its CANCEL"),
    _row("wire19_is_silent_after_the_end", "sends an element after the end", "after its end came"),
    _row("wire19_is_silent_after_the_end", "terminates twice", "after its end came"),
    _row("wire20_answers_once", "forgets to complete", "the answer is not COMPLETE"),
    _row("wire21_carries_any_bytes", "removes zero bytes", "came back changed"),
    _row("wire21_answers_an_empty_payload_with_an_element", "drops empty payloads",
         "answered by []"),
    _row("wire22_does_not_answer_fire_and_forget", "answers fire-and-forget", "was answered"),
    _row("wire23_requests_elements_after_the_first", "requests nothing on channels",
         "1 elements wait to be sent, 0 were requested"),
    _row("wire23_continues_after_the_requester_completes", "ends both directions at once",
         "the requester has completed"),
    _row("wire24_ends_both_directions_after_cancel", "continues cancelled channels", "continued"),
    _row("wire24_ends_both_directions_after_an_error", "continues failed channels", "continued"),
    _row("wire25_refuses_elements_without_demand", "accepts elements without demand",
         "none was refused"),
    _row("wire26_fails_a_request_with_an_error", "completes failed requests",
         "signaled by complete"),
    _row("wire26_fails_a_request_with_an_error", "fails streams with codes of connections",
         "not a code of"),
    _row("wire26_refuses_an_unknown_route", "completes unknown routes", "not answered by ERROR"),
    _row("wire27_ignores_a_request_on_a_stream_in_use", "serves a request on a stream in use",
         "was not ignored"),
    _row("wire28_does_not_serve_requests_on_its_own_stream_ids", "serves any stream id",
         "was served"),
    _row("wire29_serves_a_request_while_another_waits", "serves one request at a time",
         "is not served"),
    _row("wire29_serves_streams_concurrently", "serves one stream at a time", "elements came"),
    # -- bounds
    _row("wire30_reassembles_data", "keeps only the last fragment", "came back as"),
    _row("wire30_reassembles_metadata", "reads only the first metadata", "came back as"),
    _row("wire30_keeps_fragments_of_streams_apart", "mixes fragments of streams", "came back as"),
    _row("wire30_keeps_fragments_of_streams_apart", "serves cancelled fragments",
         "incomplete request was served"),
    _row("wire31_carries_payloads_longer_than_a_frame", "truncates long payloads",
         "1000 bytes came back"),
    _row("wire32_bounds_the_size_of_reassembly", "reassembles without bound", "were accepted"),
    _row("wire32_bounds_empty_fragments", "accepts any number of empty fragments", "were accepted"),
    _row("wire32_bounds_incomplete_requests", "keeps any number of incomplete requests",
         "were accepted"),
    _row("wire33_bounds_open_streams", "opens any number of streams", "are open"),
    _row("wire34_closes_without_setup", "never disconnects", "was kept for"),
    _row("wire34_closes_on_half_a_frame", "never disconnects", "was kept for"),
    _row("wire34_closes_without_keepalive", "never disconnects", "was tolerated"),
    _row("wire35_closes_on_a_flood_of_useless_frames", "tolerates any flood", "were tolerated"),
    _row("wire36_bounds_memory_of_an_unread_stream", "buffers for a client that does not read",
         "has grown"),
    _row("wire37_joins_message_fragments", "reads message fragments as frames",
         "was not read as one frame"),
    _row("wire37_rejects_text_messages", "accepts text", "a text message was accepted"),
    # -- the requester
    _row("wire38_uses_every_second_stream_id", "uses every stream id", "should be 2, 4 and 6"),
    _row("wire39_carries_the_initial_request", "requests everything initially",
         "3 were requested at first, and the wire says REQUEST_STREAM stream 2 n=2147483647"),
    _row("wire39_carries_the_initial_request", "sends its initial request twice",
         "came after the request"),
    _row("wire39_opens_a_stream_for_each_subscription", "uses one stream for two subscriptions",
         "on the streams [2, 2]"),
    _row("wire40_forwards_each_request", "does not forward later requests",
         "5 were requested; the wire says 3"),
    _row("wire40_forwards_each_request", "sends its initial request twice",
         "3 were requested; the wire says 6"),
    _row("wire40_forwards_the_largest_request", "truncates large requests", "the wire says"),
    _row("wire41_sends_no_non_positive_request", "sends any request", "was sent"),
    _row("wire42_sends_cancel_once_and_then_nothing", "sends CANCEL twice", "came after CANCEL"),
    _row("wire42_is_silent_after_the_end", "cancels a completed stream",
         "after the end of a stream"),
    _row("wire43_forwards_errors_with_their_codes", "drops errors of applications",
         "should be '0 0 error 769'"),
    _row("wire43_forwards_errors_with_their_codes", "drops error codes", "is '0 0 error 0'"),
    _row("wire43_forwards_elements", "does not count empty elements", "should be '1 0 complete'"),
    _row("wire44_cancels_a_stream_that_exceeds_its_demand", "accepts more than requested",
         "has not cancelled"),
]  # fmt: skip
