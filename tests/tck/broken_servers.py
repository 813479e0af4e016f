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
    _row("wire1_wants_setup_before_all_else", "serves without SETUP", "nothing came"),
    _row("wire1_wants_setup_before_all_else", "leaves without a word", "closed without a word"),
    _row("wire1_wants_setup_before_all_else", "leaves the connection open", "left open"),
    _row("wire1_wants_setup_on_stream_0", "takes SETUP anywhere", "nothing came"),
    _row("wire2_refuses_a_setup_that_is_cut_short", "reads a SETUP that is cut short",
         "the first 15 bytes of a SETUP nothing came"),
    _row("wire2_refuses_a_setup_that_is_cut_short", "dies of nonsense",
         "after this the server takes nobody else", "N.13"),
    _row("wire2_refuses_another_version", "takes any version", "SETUP of version 2.0"),
    _row("wire2_refuses_times_of_0", "takes times of 0", "SETUP with keepalive=0"),
    _row("wire3_refuses_wrong_credentials_and_serves_nothing", "serves whom it refuses",
         "a request was served"),
    _row("wire4_grants_or_refuses_to_resume", "promises to resume", "did not resume"),
    _row("wire4_rejects_an_unknown_session", "knows no RESUME", "not REJECTED_RESUME"),
    _row("wire5_gives_a_lease_or_refuses", "promises leases", "no LEASE has come"),
    _row("wire6_answers_keepalive_with_its_data", "answers with other data", "no answer to"),
    _row("wire6_answers_keepalive_with_its_data", "answers all signs of life", "wants no answer"),
    _row("wire7_passes_over_a_second_setup", "takes no second SETUP", "did not go on"),
    _row("wire7_passes_over_frames_that_make_no_sense", "minds what makes no sense",
         "after CANCEL on an unknown stream"),
    _row("wire7_passes_over_frames_that_make_no_sense", "answers on streams never opened",
         "on a stream that nobody has opened", "N.19"),
    _row("wire7_passes_over_flags_and_bits_without_meaning", "minds flags", "was not served"),
    _row("wire8_passes_over_what_may_be_ignored", "ignores nothing", "did not go on"),
    _row("wire8_survives_what_may_not_be_ignored", "is at a loss", "not CONNECTION_ERROR"),
    _row("wire9_refuses_metadata_that_does_not_fit", "reads metadata that is not there",
         "nothing came"),
    _row("wire10_refuses_what_is_no_frame", "passes over what is no frame", "nothing came"),
    _row("wire10_refuses_a_request_on_stream_0", "serves stream 0", "not CONNECTION_ERROR"),
    _row("wire11_ends_after_connection_error", "stays after CONNECTION_ERROR", "stays open"),
    _row("wire11_ends_with_its_last_stream_after_connection_close", "cuts streams off", "cut off"),
    _row("wire11_ends_with_its_last_stream_after_connection_close", "never leaves", "stays open"),
    _row("wire12_sends_frames_that_can_be_read", "sends odd frames", "neither NEXT nor COMPLETE"),
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
    _row("wire16_adds_requests_up", "forgets requests that come together", "elements came"),
    _row("wire16_takes_the_largest_requests", "overflows", "elements came, and no end"),
    _row("wire17_answers_a_first_request_for_nothing_by_an_error", "opens streams for nothing",
         "not answered by an error"),
    _row("wire17_sends_nothing_for_a_request_for_nothing", "gives one for nothing",
         "1 were requested in all, 2 came", "N.14"),
    _row("wire18_stops_after_cancel", "does not stop", "and more come"),
    _row("wire18_sends_nothing_for_what_was_cancelled", "answers CANCEL", "after its CANCEL"),
    _row("wire19_is_silent_after_the_end", "goes on after its end", "after its end came"),
    _row("wire19_is_silent_after_the_end", "ends twice", "after its end came"),
    _row("wire20_answers_once", "forgets to complete", "the answer is not COMPLETE"),
    _row("wire21_carries_any_bytes", "changes bytes", "came back as others"),
    _row("wire21_answers_an_empty_element_by_an_element", "loses what is empty",
         "answered by []"),
    _row("wire22_does_not_answer_fire_and_forget", "answers fire-and-forget", "was answered"),
    _row("wire23_asks_for_what_follows_the_first_element", "asks for nothing",
         "1 elements wait to be sent, 0 were asked for"),
    _row("wire23_goes_on_after_the_requester_has_completed", "closes both halves at once",
         "the requester has completed"),
    _row("wire24_ends_both_ways_after_cancel", "goes on with channels", "went on"),
    _row("wire24_ends_both_ways_after_an_error", "goes on with channels that fail", "went on"),
    _row("wire25_refuses_elements_that_nobody_asked_for", "takes what it did not ask for",
         "nothing was said"),
    _row("wire26_fails_a_request_by_an_error", "completes what has failed", "told by complete"),
    _row("wire26_fails_a_request_by_an_error", "fails by codes of connections", "no code of"),
    _row("wire26_refuses_an_unknown_route", "knows any route", "not answered by ERROR"),
    _row("wire27_passes_over_a_request_on_a_stream_in_use", "takes a request for a stream in use",
         "was not passed over"),
    _row("wire28_does_not_serve_streams_of_its_own", "serves any stream", "was served"),
    _row("wire29_serves_while_another_waits", "waits for each other", "is not served"),
    _row("wire29_serves_streams_side_by_side", "serves one stream at a time", "elements came"),
    # -- what is large, much or slow
    _row("wire30_puts_data_together", "keeps the last fragment", "came back as"),
    _row("wire30_puts_metadata_together", "reads metadata once", "came back as"),
    _row("wire30_keeps_fragments_of_streams_apart", "mixes fragments up", "came back as"),
    _row("wire30_keeps_fragments_of_streams_apart", "serves what was cancelled half-way",
         "half-way was served"),
    _row("wire31_carries_what_is_longer_than_a_frame", "cuts what is long", "came 1000 bytes"),
    _row("wire32_bounds_what_fragments_hold", "gathers without end", "were taken"),
    _row("wire32_bounds_fragments_that_bring_nothing", "gathers nothing without end",
         "were taken"),
    _row("wire32_bounds_requests_that_are_half_sent", "keeps any number of halves", "were taken"),
    _row("wire33_bounds_open_streams", "opens any number of streams", "are open"),
    _row("wire34_wants_setup_soon", "has all the patience there is", "was kept for"),
    _row("wire34_wants_the_rest_of_a_frame_soon", "has all the patience there is",
         "was kept for"),
    _row("wire34_lets_go_of_who_gives_no_sign_of_life", "has all the patience there is",
         "was borne"),
    _row("wire35_bears_no_flood_of_useless_frames", "bears any flood", "were borne"),
    _row("wire36_costs_little_when_nobody_reads", "hoards for who does not read", "has grown"),
    _row("wire37_joins_the_pieces_of_a_message", "takes pieces of messages for frames",
         "was not taken as one frame"),
    _row("wire37_refuses_text", "takes text", "a text was taken"),
    # -- who asks
    _row("wire38_counts_its_streams_by_two", "counts by one", "should be 2, 4 and 6"),
    _row("wire39_carries_what_was_requested_first", "asks for all at first",
         "3 were requested at first, and the wire says REQUEST_STREAM stream 2 n=2147483647"),
    _row("wire39_carries_what_was_requested_first", "asks twice at first",
         "behind its request came REQUEST_N"),
    _row("wire39_asks_anew_for_each_subscription", "asks on one stream for two",
         "on the streams [2, 2]"),
    _row("wire40_sends_on_each_request", "keeps later requests",
         "5 were requested; the wire says 3"),
    _row("wire40_sends_on_each_request", "asks twice at first",
         "3 were requested; the wire says 6"),
    _row("wire40_sends_on_the_largest_request", "cuts large requests", "the wire says"),
    _row("wire41_sends_no_request_that_is_not_positive", "sends any number", "was sent on"),
    _row("wire42_sends_cancel_once_and_then_nothing", "speaks behind CANCEL",
         "behind CANCEL came CANCEL"),
    _row("wire42_is_silent_after_the_end", "cancels what has ended", "behind the end of a stream"),
    _row("wire43_passes_errors_on_with_their_codes", "loses errors of applications",
         "should have got '0 0 error 769'"),
    _row("wire43_passes_errors_on_with_their_codes", "loses codes", "tells '0 0 error 0'"),
    _row("wire43_passes_elements_on", "counts no empty elements",
         "should have got '1 0 complete'"),
    _row("wire44_keeps_what_was_not_requested_from_the_subscriber", "takes more than requested",
         "has not cancelled"),
]  # fmt: skip
