"""Examples of operators that split a flow by key."""

import reactive_aio as rx


async def group_by() -> None:
    def longest(group: rx.GroupedFlow[str, str]) -> rx.Flow[str]:
        return rx.from_awaitable(lambda: group.max(key=len))

    names = rx.just("Ada", "Alan", "Grace", "Guido van Rossum")
    longest_names = names.group_by(lambda name: name[0]).flat_map(longest)
    print(await longest_names.to_list())
