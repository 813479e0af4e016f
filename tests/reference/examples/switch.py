"""Examples of operators that replace the source they read, or feed results back."""

import reactive_aio as rx


async def switch_map() -> None:
    def search(text: str) -> rx.Flow[str]:
        return rx.timer(0.2, f"results for {text}")

    typed = rx.just("r", "re", "rea").rate_limit(1, 0.1)
    print(await typed.switch_map(search).to_list())


async def expand() -> None:
    folders = {"/": ["/etc", "/home"], "/home": ["/home/ada"]}
    print(await rx.just("/").expand(lambda path: folders.get(path, [])).to_list())
