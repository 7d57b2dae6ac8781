"""Orders three things, and waits for them."""

from tasks import cook, fetch

soup = cook.delay("soup")
toast = cook.apply_async(["toast"], countdown=1, priority=9)  # the broker keeps it for a second
milk = fetch.delay([])
print(soup.get(timeout=30))
print(toast.get(timeout=30))
print(milk.get(timeout=30))
