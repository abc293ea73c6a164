"""reprise serve as OpenAI's own client for Python meets it: everything the client knows how to say and to read.

REPRISE_CLI is the program; tests/openai/run sets everything up and runs this.
"""

import asyncio
import json
import os
import re
import subprocess
import tempfile
import time
import unittest
import urllib.request

import openai

KEY = "open-sesame"
MODEL = "smollm2-135m"
CAPITAL = [{"role": "user", "content": "What is the capital of France?"}]
STORY = [{"role": "user", "content": "Write a very long story about a lighthouse, chapter by chapter."}]


class Server:
    """A server with a home of its own."""

    def __init__(self, *arguments):
        self.home = tempfile.TemporaryDirectory()
        environment = {**os.environ, "REPRISE_HOME": self.home.name, "REPRISE_API_KEY": KEY}
        command = [os.environ["REPRISE_CLI"], "serve", "--quiet", "--port", "0", *arguments]
        self.process = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
        )
        line = self.process.stdout.readline()
        self.address = re.fullmatch(r"listening on (http://\S+)\n", line).group(1)

    def client(self, key=KEY, kind=openai.OpenAI):
        return kind(base_url=f"{self.address}/v1", api_key=key, max_retries=0, timeout=60)

    def health(self):
        with urllib.request.urlopen(f"{self.address}/health", timeout=20) as reply:
            return json.load(reply)

    def wait_for(self, lanes):
        begin = time.monotonic()
        while self.health()["lanes"] != lanes:
            assert time.monotonic() - begin < 30, self.health()
            time.sleep(0.05)

    def end(self):
        """Tells it to end, and gives its exit code."""
        self.process.terminate()
        return self.process.wait(timeout=20)

    def clean_up(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.home.cleanup()


class Client(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--context", "2048")
        cls.addClassCleanup(cls.server.clean_up)
        cls.client = cls.server.client()
        cls.addClassCleanup(cls.client.close)

    def ask(self, messages, **more):
        return self.client.chat.completions.create(**{"model": MODEL, "messages": messages, "temperature": 0, **more})

    def test_models_are_listed_and_retrieved(self):
        models = self.client.models.list()
        self.assertEqual([model.id for model in models], [MODEL])
        self.assertEqual(self.client.models.retrieve(MODEL), models.data[0])
        with self.assertRaises(openai.NotFoundError) as caught:
            self.client.models.retrieve("gpt-4o")
        self.assertEqual(caught.exception.code, "model_not_found")

    def test_a_question_is_answered(self):
        answer = self.client.chat.completions.create(model=MODEL, messages=CAPITAL, seed=1, max_completion_tokens=64)
        choice = answer.choices[0]
        self.assertIn("Paris", choice.message.content)
        self.assertEqual((choice.message.role, choice.finish_reason, len(answer.choices)), ("assistant", "stop", 1))
        usage = answer.usage
        self.assertEqual(usage.total_tokens, usage.prompt_tokens + usage.completion_tokens)
        self.assertLess(abs(answer.created - time.time()), 120)

    def test_a_stream_gives_the_same_answer(self):
        whole = self.ask(CAPITAL, max_tokens=24)
        chunks = list(self.ask(CAPITAL, max_tokens=24, stream=True, stream_options={"include_usage": True}))
        pieces = [chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices]
        self.assertEqual("".join(pieces), whole.choices[0].message.content)
        self.assertEqual(chunks[0].choices[0].delta.role, "assistant")
        self.assertEqual(chunks[-2].choices[0].finish_reason, whole.choices[0].finish_reason)
        self.assertEqual(chunks[-1].choices, [])
        self.assertEqual(chunks[-1].usage.completion_tokens, whole.usage.completion_tokens)

    def test_the_clients_own_reader_of_streams_is_content(self):
        with self.client.chat.completions.stream(
            model=MODEL, messages=CAPITAL, seed=1, max_completion_tokens=64
        ) as stream:
            kinds = {event.type for event in stream}
            final = stream.get_final_completion()
        self.assertLessEqual({"chunk", "content.delta", "content.done"}, kinds)
        self.assertEqual(final.choices[0].finish_reason, "stop")
        self.assertIn("Paris", final.choices[0].message.content)

    def test_a_chat_reuses_what_was_read(self):
        messages = [{"role": "developer", "content": "Be brief. " * 40}, *CAPITAL]
        first = self.ask(messages, max_tokens=16).choices[0].message.content
        messages += [{"role": "assistant", "content": first}, {"role": "user", "content": "And of Spain?"}]
        usage = self.ask(messages, max_tokens=4).usage
        self.assertGreater(usage.prompt_tokens_details.cached_tokens, 100)
        self.assertLess(usage.prompt_tokens_details.cached_tokens, usage.prompt_tokens)

    def test_parts_stops_and_limits_are_honoured(self):
        parts = [{"role": "user", "content": [{"type": "text", "text": "Count to ten:"}, {"type": "text", "text": "1, 2"}]}]
        whole = self.ask(parts, max_tokens=20).choices[0].message.content
        stop = whole.split()[2]
        stopped = self.ask(parts, max_tokens=20, stop=[stop])
        self.assertEqual(stopped.choices[0].message.content, whole[: whole.index(stop)])
        self.assertEqual(stopped.choices[0].finish_reason, "stop")
        self.assertEqual(self.ask(parts, max_completion_tokens=3).usage.completion_tokens, 3)

    def test_errors_are_the_clients_own(self):
        with self.assertRaises(openai.AuthenticationError) as caught:
            self.server.client(key="wrong").models.list()
        self.assertEqual(caught.exception.code, "invalid_api_key")
        with self.assertRaises(openai.NotFoundError) as caught:
            self.ask(CAPITAL, model="gpt-4o")
        self.assertIn(MODEL, caught.exception.message)
        picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
        refused = [
            ({"messages": [{"role": "user", "content": [picture]}]}, "messages[0].content[0]"),
            ({"response_format": {"type": "json_object"}}, "response_format"),
            ({"tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}]}, "tools"),
            ({"logprobs": True}, "logprobs"),
            ({"n": 2}, "n"),
            ({"presence_penalty": 1.0}, "presence_penalty"),
        ]
        for more, param in refused:
            with self.subTest(param), self.assertRaises(openai.BadRequestError) as caught:
                self.ask(**{"messages": CAPITAL, **more})
            self.assertEqual((caught.exception.param, caught.exception.code), (param, "unsupported_parameter"))
        for stream in (False, True):
            with self.assertRaises(openai.BadRequestError) as caught:
                self.ask([{"role": "user", "content": "word " * 3000}], stream=stream)
            self.assertEqual(caught.exception.code, "context_length_exceeded")

    def test_closing_a_stream_frees_its_lane(self):
        stream = self.ask(STORY, max_tokens=1500, stream=True)
        next(iter(stream))
        self.server.wait_for(1)
        stream.close()
        self.server.wait_for(0)

    def test_several_are_answered_at_once(self):
        questions = [[{"role": "user", "content": f"What is {n} plus {n}?"}] for n in range(6)]
        alone = [self.ask(question, max_tokens=12).choices[0].message.content for question in questions]

        async def together():
            async with self.server.client(kind=openai.AsyncOpenAI) as client:
                asked = [
                    client.chat.completions.create(model=MODEL, messages=question, temperature=0, max_tokens=12)
                    for question in questions
                ]
                return [answer.choices[0].message.content for answer in await asyncio.gather(*asked)]

        self.assertEqual(asyncio.run(together()), alone)


class Limits(unittest.TestCase):
    def test_a_full_queue_and_the_servers_end_are_errors_of_the_client(self):
        server = Server("--queue", "0", "--threads", "1")
        self.addCleanup(server.clean_up)
        client = server.client()
        self.addCleanup(client.close)
        more = {"model": MODEL, "messages": STORY, "max_tokens": 1500, "temperature": 0}
        streams = [client.chat.completions.create(stream=True, **more) for _ in range(4)]
        for stream in streams:
            next(iter(stream))
        with self.assertRaises(openai.InternalServerError) as caught:
            client.chat.completions.create(**more)
        self.assertEqual((caught.exception.status_code, caught.exception.code), (503, "queue_full"))
        self.assertEqual(caught.exception.response.headers["retry-after"], "5")

        self.assertEqual(server.end(), 0)
        for stream in streams:
            with self.assertRaises(openai.APIError) as caught:
                for _ in stream:
                    pass
            self.assertIn("stopping", caught.exception.message)


if __name__ == "__main__":
    unittest.main(verbosity=2)
