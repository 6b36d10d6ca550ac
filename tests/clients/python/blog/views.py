"""Pages for the test client."""

import json

from django.contrib.auth.decorators import login_required
from django.db import transaction
from django.db.models import Count
from django.http import HttpResponse, JsonResponse
from django.urls import path
from django.views.decorators.csrf import csrf_exempt

from .models import Article, Comment


def front_page(_request):
    """All published articles with their number of comments."""
    articles = Article.objects.filter(published=True).select_related("writer").annotate(
        comment_count=Count("comments"))
    return JsonResponse({"articles": [
        {"title": article.title, "writer": article.writer.name, "comments": article.comment_count}
        for article in articles]})


@csrf_exempt
@transaction.atomic
def add_comment(request, article_id):
    """Stores a comment; a text of `fail` breaks the transaction after the write."""
    text = json.loads(request.body)["text"]
    comment = Comment.objects.create(article_id=article_id, text=text)
    if text == "fail":
        raise ValueError("asked to fail")
    return JsonResponse({"id": comment.pk}, status=201)


@login_required
def private(request):
    """Only with a session."""
    request.session["visits"] = request.session.get("visits", 0) + 1
    return HttpResponse(f"{request.user.username} {request.session['visits']}")


urlpatterns = [path("", front_page), path("comment/<int:article_id>", add_comment),
               path("private", private)]
