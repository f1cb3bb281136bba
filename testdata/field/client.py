"""One segment of serve.py: python3 client.py http://localhost:PORT TOKENS SEED RESULT.json"""
import sys
import urllib.request

address, tokens, seed, result = sys.argv[1:]
with urllib.request.urlopen(f"{address}/run?tokens={tokens}&seed={seed}", timeout=300) as answer, open(result, "wb") as f:
    f.write(answer.read())
