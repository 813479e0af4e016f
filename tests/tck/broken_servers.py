"""For each law of the wire a server that breaks it, and what the verdict says.

A table: the documentation is generated from it.
"""

from dataclasses import dataclass

__all__ = ("SERVERS", "BrokenServer")


@dataclass(frozen=True)
class BrokenServer:
    """One law, a server with a flaw, and the words of the verdict."""

    law: str
    flaw: str
    """What the server does wrong: "a server that …"."""
    rule: str
    """The one that the verdict names."""
    words: str
    websocket: bool = False

    def __str__(self) -> str:
        return f"{self.law}: {self.flaw}"


def _row(law: str, flaw: str, words: str, rule: str = "") -> BrokenServer:
    number = law.partition("_")[0].removeprefix("wire")
    return BrokenServer(law, flaw, rule or f"N.{number}", words, number == "37")


SERVERS = [
    # -- the connection
    _row("wire1_serves_nothing_before_setup", "serves without SETUP", "a request was served"),
    _row("wire1_requires_setup_first", "serves without SETUP", "nothing came"),
    _row("wire1_requires_setup_first", "leaves without a word", "closed without a word"),
    _row("wire1_requires_setup_first", "leaves the connection open", "left open"),
    _row("wire1_requires_setup_on_stream_0", "takes SETUP anywhere", "nothing came"),
    _row("wire2_rejects_a_truncated_setup", "reads a SETUP that is cut short",
         "the first 15 bytes of a SETUP nothing came"),
    _row("wire2_rejects_a_truncated_setup", "dies of nonsense",
         "after this the server takes nobody else", "N.13"),
    _row("wire2_rejects_another_version", "takes any version", "SETUP of version 2.0"),
    _row("wire2_rejects_zero_intervals", "takes times of 0", "SETUP with keepalive=0"),
    _row("wire3_rejects_wrong_credentials_and_serves_nothing", "serves whom it refuses",
         "a request was served"),
    _row("wire4_grants_or_refuses_to_resume", "promises to resume", "did not resume"),
    _row("wire4_rejects_an_unknown_session", "knows no RESUME", "not REJECTED_RESUME"),
    _row("wire5_grants_a_lease_or_refuses", "promises leases", "no LEASE has come"),
    _row("wire6_answers_keepalive_with_its_data", "answers with other data", "no answer to"),
    _row("wire6_answers_keepalive_with_its_data", "answers all signs of life", "wants no answer"),
    _row("wire7_ignores_a_second_setup", "takes no second SETUP", "did not go on"),
    _row("wire7_ignores_frames_out_of_context", "minds what makes no sense",
         "after CANCEL on an unknown stream"),
    _row("wire7_ignores_frames_out_of_context", "answers on streams never opened",
         "on a stream that nobody has opened", "N.19"),
    _row("wire7_ignores_unknown_flags_and_bits", "minds flags", "was not served"),
    _row("wire8_ignores_frames_marked_ignore", "ignores nothing", "did not go on"),
    _row("wire8_survives_unknown_frames", "is at a loss", "not CONNECTION_ERROR"),
    _row("wire9_rejects_metadata_longer_than_its_frame", "reads metadata that is not there",
         "nothing came"),
    _row("wire10_rejects_malformed_frames", "passes over what is no frame", "nothing came"),
    _row("wire10_rejects_a_request_on_stream_0", "serves stream 0", "not CONNECTION_ERROR"),
    _row("wire11_closes_after_connection_error", "stays after CONNECTION_ERROR", "stays open"),
    _row("wire11_closes_with_its_last_stream_after_connection_close", "cuts streams off", "cut off"),
    _row("wire11_closes_with_its_last_stream_after_connection_close", "never leaves", "stays open"),
    _row("wire12_sends_well_formed_frames", "sends odd frames", "neither NEXT nor COMPLETE"),
    # -- who answers
    _row("wire14_sends_no_more_than_the_first_request", "sends one too many",
         "1 were requested in all, 2 came"),
    _row("wire14_sends_one_for_one", "sends one too many", "1 were requested in all, 2 came"),
    _row("wire14_sends_one_for_one", "gives none for later requests", "2 were requested in all",
         "N.15"),
    _row("wire14_sends_no_more_on_a_channel", "sends one too many and asks for many",
         "3 were requested in all, 4 came"),
    _row("wire15_completes_without_further_demand", "completes on demand only", "and no end"),
    _row("wire15_completes_without_further_demand", "does not complete", "and no end"),
    _row("wire15_sends_a_long_stream_in_order", "loses elements", "came"),
    _row("wire16_adds_up_requests", "forgets requests that come together", "elements came"),
    _row("wire16_accepts_the_largest_requests", "overflows", "elements came, and no end"),
    _row("wire17_rejects_an_initial_request_of_0", "opens streams for nothing",
         "not answered by an error"),
    _row("wire17_sends_nothing_for_a_request_of_0", "gives one for nothing",
         "1 were requested in all, 2 came", "N.14"),
    _row("wire18_stops_after_cancel", "does not stop", "and more come"),
    _row("wire18_sends_nothing_on_a_cancelled_stream", "answers CANCEL", "after its CANCEL"),
    _row("wire19_is_silent_after_the_end", "goes on after its end", "after its end came"),
    _row("wire19_is_silent_after_the_end", "ends twice", "after its end came"),
    _row("wire20_answers_once", "forgets to complete", "the answer is not COMPLETE"),
    _row("wire21_carries_any_bytes", "changes bytes", "came back as others"),
    _row("wire21_answers_an_empty_payload_with_an_element", "loses what is empty",
         "answered by []"),
    _row("wire22_does_not_answer_fire_and_forget", "answers fire-and-forget", "was answered"),
    _row("wire23_requests_elements_after_the_first", "asks for nothing",
         "1 elements wait to be sent, 0 were asked for"),
    _row("wire23_continues_after_the_requester_completes", "closes both halves at once",
         "the requester has completed"),
    _row("wire24_ends_both_directions_after_cancel", "goes on with channels", "went on"),
    _row("wire24_ends_both_directions_after_an_error", "goes on with channels that fail", "went on"),
    _row("wire25_refuses_elements_without_demand", "takes what it did not ask for",
         "nothing was said"),
    _row("wire26_fails_a_request_with_an_error", "completes what has failed", "told by complete"),
    _row("wire26_fails_a_request_with_an_error", "fails by codes of connections", "no code of"),
    _row("wire26_refuses_an_unknown_route", "knows any route", "not answered by ERROR"),
    _row("wire27_ignores_a_request_on_a_stream_in_use", "takes a request for a stream in use",
         "was not passed over"),
    _row("wire28_does_not_serve_requests_on_its_own_stream_ids", "serves any stream", "was served"),
    _row("wire29_serves_a_request_while_another_waits", "waits for each other", "is not served"),
    _row("wire29_serves_streams_concurrently", "serves one stream at a time", "elements came"),
    # -- what is large, much or slow
    _row("wire30_reassembles_data", "keeps the last fragment", "came back as"),
    _row("wire30_reassembles_metadata", "reads metadata once", "came back as"),
    _row("wire30_keeps_fragments_of_streams_apart", "mixes fragments up", "came back as"),
    _row("wire30_keeps_fragments_of_streams_apart", "serves what was cancelled half-way",
         "half-way was served"),
    _row("wire31_carries_payloads_longer_than_a_frame", "cuts what is long", "came 1000 bytes"),
    _row("wire32_bounds_the_size_of_reassembly", "gathers without end", "were taken"),
    _row("wire32_bounds_empty_fragments", "gathers nothing without end",
         "were taken"),
    _row("wire32_bounds_incomplete_requests", "keeps any number of halves", "were taken"),
    _row("wire33_bounds_open_streams", "opens any number of streams", "are open"),
    _row("wire34_closes_without_setup", "has all the patience there is", "was kept for"),
    _row("wire34_closes_on_half_a_frame", "has all the patience there is",
         "was kept for"),
    _row("wire34_closes_without_keepalive", "has all the patience there is",
         "was borne"),
    _row("wire35_closes_on_a_flood_of_useless_frames", "bears any flood", "were borne"),
    _row("wire36_bounds_memory_of_an_unread_stream", "hoards for who does not read", "has grown"),
    _row("wire37_joins_message_fragments", "takes pieces of messages for frames",
         "was not taken as one frame"),
    _row("wire37_rejects_text_messages", "takes text", "a text was taken"),
    # -- who asks
    _row("wire38_uses_every_second_stream_id", "counts by one", "should be 2, 4 and 6"),
    _row("wire39_carries_the_initial_request", "asks for all at first",
         "3 were requested at first, and the wire says REQUEST_STREAM stream 2 n=2147483647"),
    _row("wire39_carries_the_initial_request", "asks twice at first",
         "behind its request came REQUEST_N"),
    _row("wire39_opens_a_stream_for_each_subscription", "asks on one stream for two",
         "on the streams [2, 2]"),
    _row("wire40_forwards_each_request", "keeps later requests",
         "5 were requested; the wire says 3"),
    _row("wire40_forwards_each_request", "asks twice at first",
         "3 were requested; the wire says 6"),
    _row("wire40_forwards_the_largest_request", "cuts large requests", "the wire says"),
    _row("wire41_sends_no_non_positive_request", "sends any number", "was sent on"),
    _row("wire42_sends_cancel_once_and_then_nothing", "speaks behind CANCEL",
         "behind CANCEL came CANCEL"),
    _row("wire42_is_silent_after_the_end", "cancels what has ended", "behind the end of a stream"),
    _row("wire43_forwards_errors_with_their_codes", "loses errors of applications",
         "should have got '0 0 error 769'"),
    _row("wire43_forwards_errors_with_their_codes", "loses codes", "tells '0 0 error 0'"),
    _row("wire43_forwards_elements", "counts no empty elements",
         "should have got '1 0 complete'"),
    _row("wire44_cancels_a_stream_that_exceeds_its_demand", "takes more than requested",
         "has not cancelled"),
]  # fmt: skip
