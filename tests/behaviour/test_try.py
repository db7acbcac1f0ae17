from tests.behaviour.scenes import Book
def test_x(tmp_path, capsys):
    b = Book(tmp_path/"p", capsys)
    b.needs(s2=2)
    d = b.go()
    print(d["status"], d["failed"], d["made"], d["paused"])
    print(b.read("book.md")); print(b.read("state.json"))
    print(b.do("status").out); print(b.do("phases","s2").out); print(b.do("log").out[-1500:])
    print(b.do("run").out)
    assert 0
